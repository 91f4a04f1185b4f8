from .checkpoints import watch_checkpoints as watch_checkpoints
from .recorder import Recorder as Recorder
from .recorder import watch as watch
from .report import WatchReport as WatchReport
