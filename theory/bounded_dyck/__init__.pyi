from . import balance as balance
from . import lottery as lottery
from . import networks as networks
from . import pruning as pruning
from . import silence as silence
from . import statements as statements
from . import subset_law as subset_law
from . import transformers as transformers
