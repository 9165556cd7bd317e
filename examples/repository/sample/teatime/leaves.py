"""The teas: degrees Celsius, seconds of the first steeping, and how many steepings the leaves bear."""

LEAVES = {
    "sencha": (70, 90, 2),
    "gyokuro": (60, 120, 3),
    "dragonwell": (80, 120, 3),
    "silver needle": (80, 300, 3),
    "white peony": (85, 240, 3),
    "tieguanyin": (95, 60, 5),
    "darjeeling": (95, 180, 1),
    "assam": (100, 240, 1),
    "pu-erh": (100, 30, 8),
}
