from .checkpoints import watch_checkpoints as watch_checkpoints
from .recorder import Recorder as Recorder
from .report import WatchReport as WatchReport
from .watching import watch as watch
