from __future__ import annotations

from tests.journal.conftest import opened as opened
from tests.journal.conftest import server as server
from tests.journal.conftest import url as url
from tests.journal.ledger.conversation_holds import other as other
