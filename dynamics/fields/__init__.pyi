from .own import Field as Field
from .table import fields as fields
from .table import register_field as register_field
