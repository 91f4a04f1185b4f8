from . import attention_unit, qsa
