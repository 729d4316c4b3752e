import torch
from sklearn.datasets import load_digits
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
loader = DataLoader(TensorDataset(images, torch.tensor(digits.target)), batch_size=64, shuffle=True)
model = torch.nn.Sequential(
    torch.nn.Conv2d(1, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(1024, 10)
)
optimizer = torch.optim.Adam(model.parameters())
history = []


def train_step(batch, target):
    optimizer.zero_grad()
    functional.cross_entropy(model(batch), target).backward()
    optimizer.step()


def check(batch, target):
    loss = functional.cross_entropy(model(batch), target)
    history.append(loss.item())


for epoch in range(2):
    for batch, target in loader:
        train_step(batch, target)
        check(batch, target)
    print(f"epoch {epoch}: loss {sum(history) / len(history):.3f}")
