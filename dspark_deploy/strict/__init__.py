"""Text from outside becomes typed values here, or one clear error with file, line and key."""

from dspark_deploy.strict.check import explain, validate
from dspark_deploy.strict.document import Data, Document, KeyPath, dotted, read_document, read_text
from dspark_deploy.strict.given import Given, data_of
from dspark_deploy.strict.home import from_home
from dspark_deploy.strict.key import key_in, read_key, refuse_readable
from dspark_deploy.strict.model import Flag, FlagValue, Mistake, Name, Strict, Text, Variable, nearest
from dspark_deploy.strict.shell import Assigned, read_assignments

__all__ = [
    "Assigned",
    "Data",
    "Document",
    "Flag",
    "FlagValue",
    "Given",
    "KeyPath",
    "Mistake",
    "Name",
    "Strict",
    "Text",
    "Variable",
    "data_of",
    "dotted",
    "explain",
    "from_home",
    "key_in",
    "nearest",
    "read_assignments",
    "read_document",
    "read_key",
    "read_text",
    "refuse_readable",
    "validate",
]
