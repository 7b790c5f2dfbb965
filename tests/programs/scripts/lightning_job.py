# SPDX-License-Identifier: Apache-2.0
"""Lightning: a training run with its own loop, optimizer and data loader."""
import logging
import warnings

import lightning
import torch

logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")


class Net(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))

    def training_step(self, batch, index):
        inputs, labels = batch
        return torch.nn.functional.cross_entropy(self.layers(inputs), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


lightning.seed_everything(0, verbose=False)
torch.set_num_threads(1)
data = torch.utils.data.TensorDataset(torch.randn(64, 16), torch.randint(0, 2, (64,)))
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False)
net = Net()
trainer.fit(net, torch.utils.data.DataLoader(data, batch_size=16))
print(trainer.global_step, f"{sum(float(part.abs().sum()) for part in net.parameters()):.4f}")
