import torch
from sklearn.datasets import load_digits
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

pixels, digits = load_digits(return_X_y=True)
images = torch.tensor(pixels, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16
loader = DataLoader(TensorDataset(images, torch.tensor(digits)), batch_size=64, shuffle=True)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(1024, 10)
)
optimizer = torch.optim.Adam(model.parameters())
history: list[torch.Tensor | float] = []


def train_step(batch: torch.Tensor, target: torch.Tensor) -> None:
    optimizer.zero_grad()
    functional.cross_entropy(model(batch), target).backward()
    optimizer.step()


def check(batch: torch.Tensor, target: torch.Tensor) -> None:
    loss = functional.cross_entropy(model(batch), target)
    history.append(loss)


for epoch in range(2):
    for batch, target in loader:
        train_step(batch, target)
        check(batch, target)
    print(f"epoch {epoch}: loss {sum(history) / len(history):.3f}")
