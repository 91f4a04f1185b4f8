from . import statements as statements
from . import symbolic as symbolic
from .scan_and_snap import attention as attention
from .scan_and_snap import decoder as decoder
from .scan_and_snap import early as early
from .scan_and_snap import token_estimates as token_estimates
from .scan_and_snap import tokens as tokens
