from . import attention_unit as attention_unit
from . import qsa as qsa
