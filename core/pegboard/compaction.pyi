# Written by `poe stubs` from the table in the module beside it.
from pegboard.contract.host import Compaction as Compaction
from pegboard.contract.host import CompactionRequest as CompactionRequest
from pegboard.contract.host import Compactor as Compactor
