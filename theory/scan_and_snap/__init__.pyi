from . import attention as attention
from . import decoder as decoder
from . import early as early
from . import finite_sequences as finite_sequences
from . import statements as statements
from . import token_estimates as token_estimates
from . import tokens as tokens
