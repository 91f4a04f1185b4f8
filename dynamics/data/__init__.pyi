from . import averaging, dyck, sequence_classes, text
from .dyck import DyckLanguage
from .sequence_classes import SequenceClasses
from .text import TextCorpus
