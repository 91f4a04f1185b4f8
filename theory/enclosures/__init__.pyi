from .enclosure import Decision as Decision
from .enclosure import Enclosure as Enclosure
from .enclosure import enclose_flow as enclose_flow
from .keeping import kept as kept
from .moments import Moment as Moment
from .quantities import Claim as Claim
from .quantities import Quantity as Quantity
