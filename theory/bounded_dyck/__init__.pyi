from . import balance as balance
from . import measures as measures
from . import networks as networks
from . import proofs as proofs
from . import pruning as pruning
from . import silence as silence
from . import statements as statements
