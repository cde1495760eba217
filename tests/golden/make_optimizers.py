#!/usr/bin/env python3
"""Makes optimizers.txt: weights and states after each step of torch.optim's optimizers, and of Lion's by its author's package lion-pytorch.
Run by hand, with both installed:

    tests/golden/make_optimizers.py > tests/golden/optimizers.txt

First come "weight" and "gradient STEP" of each shape, which all cases share. A case is "case KIND DTYPE" and numbers: learning rate,
momentum, dampening, Nesterov, weight decay, beta1, beta2, epsilon, maximize. Then, for each step, "STEP NAME" and the elements of weights
("w0") and states ("w0.exp_avg"). DTYPE is f64, or masters: weights and gradients are rounded to bf16, and then trained in f32.
Muon's iteration is in f64: torch's own is in bf16, whose name is replaced in its source."""
import inspect
import random

import torch
import torch.optim._muon as muon
from lion_pytorch import Lion

STEPS = 4
SHAPES = [(4, 3), (5,), (3, 5)]
numbers = random.Random(66)
iteration = inspect.getsource(muon._zeropower_via_newtonschulz)
assert iteration.count("torch.bfloat16") == 1
exec(iteration.replace("torch.bfloat16", "torch.float64"), muon.__dict__)


def draw(shape, scale):
    count = 1
    for size in shape:
        count *= size
    return torch.tensor([numbers.uniform(-scale, scale) for _ in range(count)], dtype=torch.float64).reshape(shape)


def write(name, x):
    print(name, *(float(value).hex() for value in x.reshape(-1).tolist()))


weights = [draw(shape, 1) for shape in SHAPES]
gradients = [[draw(shape, 0.5) for shape in SHAPES] for _ in range(STEPS)]
for i, weight in enumerate(weights):
    write(f"weight{i}", weight)
for step in range(STEPS):
    for i in range(len(SHAPES)):
        write(f"gradient{i}.{step + 1}", gradients[step][i])


def start(values, masters):
    return values.to(torch.bfloat16).to(torch.float32) if masters else values.clone()


def case(kind, make, states, shapes=(0, 1), masters=False, rate=1e-2, momentum=0, dampening=0, nesterov=0, decay=0, beta1=0, beta2=0,
         epsilon=0, maximize=0):
    parameters = [torch.nn.Parameter(start(weights[i], masters)) for i in shapes]
    optimizer = make(parameters)
    print("case", kind, "masters" if masters else "f64",
          *(float(x).hex() for x in (rate, momentum, dampening, nesterov, decay, beta1, beta2, epsilon, maximize)))
    for step in range(STEPS):
        for place, i in enumerate(shapes):
            parameters[place].grad = start(gradients[step][i], masters)
        optimizer.step()
        for place, parameter in enumerate(parameters):
            write(f"{step + 1} w{place}", parameter.detach())
            for state in states:
                if state in optimizer.state[parameter]:
                    write(f"{step + 1} w{place}.{state}", optimizer.state[parameter][state])


def sgd(rate=1e-2, momentum=0, dampening=0, nesterov=0, decay=0, maximize=0, **others):
    case("sgd", lambda p: torch.optim.SGD(p, rate, momentum, dampening, decay, bool(nesterov), maximize=bool(maximize), foreach=False),
         ["momentum_buffer"], rate=rate, momentum=momentum, dampening=dampening, nesterov=nesterov, decay=decay, maximize=maximize, **others)


def adamw(rate=1e-2, beta1=0.9, beta2=0.999, epsilon=1e-8, decay=1e-2, maximize=0, **others):
    case("adamw", lambda p: torch.optim.AdamW(p, rate, (beta1, beta2), epsilon, decay, maximize=bool(maximize), foreach=False),
         ["exp_avg", "exp_avg_sq"], rate=rate, beta1=beta1, beta2=beta2, epsilon=epsilon, decay=decay, maximize=maximize, **others)


def lion(rate=1e-2, beta1=0.9, beta2=0.99, decay=0.0, **others):
    case("lion", lambda p: Lion(p, lr=rate, betas=(beta1, beta2), weight_decay=decay), ["exp_avg"], rate=rate, beta1=beta1, beta2=beta2,
         decay=decay, **others)


sgd()
sgd(decay=0.1)
sgd(momentum=0.9, decay=0.1)
sgd(momentum=0.9, dampening=0.3)
sgd(momentum=0.7, nesterov=1, decay=0.05)
sgd(momentum=0.9, maximize=1)
sgd(momentum=0.9, decay=0.1, masters=True)
adamw()
adamw(rate=3e-4, beta1=0.3, beta2=0.9, epsilon=1e-3, decay=0.0)
adamw(rate=0.1, beta1=0.5, beta2=0.95, decay=0.3, maximize=1)
adamw(decay=0.1, masters=True)
lion()
lion(rate=3e-4, beta1=0.95, beta2=0.98, decay=0.1)
lion(decay=0.1, masters=True)
case("adafactor", lambda p: torch.optim.Adafactor(p, 1e-2, foreach=False), ["row_var", "col_var", "variance"])
case("adafactor", lambda p: torch.optim.Adafactor(p, 1e-1, weight_decay=0.1, foreach=False), ["row_var", "col_var", "variance"],
     rate=1e-1, decay=0.1)
case("muon", lambda p: torch.optim.Muon(p, 1e-2), ["momentum_buffer"], shapes=(0, 2), momentum=0.95, nesterov=1, decay=0.1)
case("muon", lambda p: torch.optim.Muon(p, 1e-1, weight_decay=0.0, momentum=0.8, nesterov=False), ["momentum_buffer"], shapes=(0, 2),
     rate=1e-1, momentum=0.8)
