from . import averaging as averaging
from . import dyck as dyck
from . import sequence_classes as sequence_classes
from . import text as text
from .dyck import DyckLanguage as DyckLanguage
from .sequence_classes import SequenceClasses as SequenceClasses
from .text import TextCorpus as TextCorpus
