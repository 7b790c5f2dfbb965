# SPDX-License-Identifier: Apache-2.0
"""diffusers: a pipeline with a small U-Net of random weights."""
import torch
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel

torch.manual_seed(0)
torch.set_num_threads(1)


def make_images(pipeline):
    return pipeline(batch_size=1, num_inference_steps=3, generator=torch.Generator().manual_seed(0), output_type="np").images


net = UNet2DModel(sample_size=16, in_channels=3, out_channels=3, layers_per_block=1, block_out_channels=(32, 64),
                  down_block_types=("DownBlock2D", "AttnDownBlock2D"), up_block_types=("AttnUpBlock2D", "UpBlock2D"))
pipeline = DDPMPipeline(net, DDPMScheduler(num_train_timesteps=10))
pipeline.set_progress_bar_config(disable=True)
images = make_images(pipeline)
print(images.shape, f"{float(images.sum()):.2f}")
