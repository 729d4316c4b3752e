import leakprobe


class Captions:
    def __init__(self) -> None:
        self.paths = [f"images/{k:08d}.jpg" for k in range(100_000)]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, k: int) -> str:
        return self.paths[k]


if __name__ == "__main__":
    leakprobe.audit(Captions(), num_workers=4).print()
