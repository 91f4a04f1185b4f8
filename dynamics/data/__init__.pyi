from . import reading as reading
from . import sequence_classes as sequence_classes
from . import text as text
from .reading import read_data as read_data
from .sequence_classes import SequenceClasses as SequenceClasses
from .text import TextCorpus as TextCorpus
