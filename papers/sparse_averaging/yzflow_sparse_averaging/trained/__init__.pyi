from . import linear_query as linear_query
from . import qsa as qsa
