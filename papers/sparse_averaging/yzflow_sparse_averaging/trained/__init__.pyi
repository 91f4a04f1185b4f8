from . import attention_unit as attention_unit
from . import linear_query as linear_query
from . import qsa as qsa
