#!/usr/bin/env python3
"""Makes narrow-kernels.txt: kernels on bf16 and f16 with PyTorch's results.

Run with PyTorch 2 (CPU): make_narrow_kernels.py > narrow-kernels.txt

A reference is what PyTorch's own op gives on narrow tensors ("eager"), or its op
on the same numbers in f64 with one rounding of each result ("rounded"), where
the eager op rounds in between or keeps statistics in the narrow type. A case is

  case NAME ULPS        ULPS: how many units in the last place may differ
  kernel MLIR           with @NAME, on one line
  in TYPE HEX...        one operand, an element each
  out TYPE HEX...       one result
"""
import torch
import torch.nn.functional as F

torch.manual_seed(0)
NAMES = {torch.bfloat16: 'bf16', torch.float16: 'f16', torch.float32: 'f32',
         torch.int64: 'i64', torch.bool: 'i1'}
BITS = {2: torch.int16, 4: torch.int32, 8: torch.int64, 1: torch.uint8}


def mlir(tensor):
    return 'tensor<%s%s>' % (''.join('%dx' % d for d in tensor.shape),
                             NAMES[tensor.dtype])


def hexes(tensor):
    size = tensor.element_size()
    bits = tensor.detach().contiguous().view(BITS[size]).flatten().tolist()
    return ' '.join('%0*x' % (2 * size, b & ((1 << (8 * size)) - 1)) for b in bits)


def case(name, ulps, op, inputs, outputs, extra=''):
    """`op` with {} for the operands; types follow as a function type, or as
    `extra` says."""
    args = ['%%a%d' % i for i in range(len(inputs))]
    params = ', '.join('%s: %s' % (a, mlir(t)) for a, t in zip(args, inputs))
    ins = ', '.join(map(mlir, inputs))
    outs = ', '.join(map(mlir, outputs))
    if not extra:
        extra = '(%s) -> (%s)' % (ins, outs)
    results = ', '.join('%%r#%d' % i for i in range(len(outputs))) \
        if len(outputs) > 1 else '%r'
    count = ':%d' % len(outputs) if len(outputs) > 1 else ''
    body = '%%r%s = train.%s : %s' % (count, op.format(*args), extra)
    print('case', name, ulps)
    print('kernel func.func @%s(%s) -> (%s) attributes {plan.kernel} '
          '{ %s return %s : %s }' % (name, params, outs, body, results, outs))
    for tensor in inputs:
        print('in', NAMES[tensor.dtype], hexes(tensor))
    for tensor in outputs:
        print('out', NAMES[tensor.dtype], hexes(tensor))


def rounded(function, inputs, dtype):
    """`function` in f64 on the inputs' numbers, then one rounding."""
    wide = [t.double() if t.is_floating_point() else t for t in inputs]
    result = function(*wide)
    result = result if isinstance(result, (tuple, list)) else (result,)
    return [r.float().to(dtype) if r.is_floating_point() else r for r in result]


def gradients(function, inputs, seed):
    """Gradients of `function` by the floats among `inputs`, in f64."""
    leaves = [t.double().requires_grad_() if t.is_floating_point() else t
              for t in inputs]
    function(*leaves).backward(seed.double())
    return [t.grad for t in leaves if t.is_floating_point()]


def normal(dtype, *shape):
    return torch.randn(*shape).to(dtype)


def special(dtype):
    """Zeros, infinities, not a number, subnormals, extremes, and numbers."""
    info = torch.finfo(dtype)
    tiny = info.smallest_normal / 8
    values = [0.0, -0.0, float('inf'), -float('inf'), float('nan'), tiny, -tiny,
              info.smallest_normal, info.max, -info.max, 1.0, -1.0, 0.5, 2.0]
    return torch.cat([torch.tensor(values).to(dtype), normal(dtype, 67) * 3,
                      normal(dtype, 32) * 0.01])


def elementwise(dtype, t):
    x, y = special(dtype), normal(dtype, 113)
    same = mlir(x)
    unary = {
        'neg': (torch.neg, 0), 'abs': (torch.abs, 0), 'sqrt': (torch.sqrt, 0),
        'reciprocal': (torch.reciprocal, 0), 'relu': (torch.relu, 0),
        'floor': (torch.floor, 0), 'exp': (torch.exp, 1),
        'rsqrt': (torch.rsqrt, 1),
        'tanh': (torch.tanh, 1), 'sigmoid': (torch.sigmoid, 1)}
    for name, (function, ulps) in unary.items():
        case('%s_%s' % (name, t), ulps, name + ' {}', [x], [function(x)], same)
    # PyTorch's erf takes subnormals for zero, our log the smallest normal.
    case('erf_' + t, 1, 'erf {}', [x], rounded(torch.erf, [x], dtype), same)
    y = x[(x.abs() >= torch.finfo(dtype).smallest_normal) | ~(x.abs() > 0)]
    case('log_' + t, 1, 'log {}', [y], [torch.log(y)], mlir(y))
    y = normal(dtype, 113)
    small = normal(dtype, 113) * 2
    for name in 'sin', 'cos':
        case('%s_%s' % (name, t), 1, name + ' {}', [small],
             [getattr(torch, name)(small)], same)
    case('gelu_' + t, 1, 'gelu {}', [small], rounded(F.gelu, [small], dtype), same)
    case('gelu_tanh_' + t, 1, 'gelu {} {{approximate = "tanh"}}', [small],
         rounded(lambda v: F.gelu(v, approximate='tanh'), [small], dtype), same)
    for approximate, suffix in ('none', ''), ('tanh', ' {{approximate = "tanh"}}'):
        grad = gradients(lambda v: F.gelu(v, approximate=approximate), [small], y)
        case('gelu_grad_%s_%s' % (approximate, t), 1, 'gelu_grad {}, {}' + suffix,
             [y, small], [grad[0].float().to(dtype)], same)
    binary = {'add': torch.add, 'sub': torch.sub, 'mul': torch.mul,
              'div': torch.div, 'max': torch.maximum, 'min': torch.minimum}
    for name, function in binary.items():
        case('%s_%s' % (name, t), 0, name + ' {}, {}', [x, y], [function(x, y)])
    positive = normal(dtype, 113).abs()
    case('pow_' + t, 1, 'pow {}, {}', [positive, y], [torch.pow(positive, y)])
    mask = torch.rand(113) > 0.5
    case('where_' + t, 0, 'where {}, {}, {}', [mask, x, y],
         [torch.where(mask, x, y)])
    case('relu_grad_' + t, 0, 'relu_grad {}, {}', [y, small],
         [torch.where(small > 0, y, torch.zeros_like(y))], same)
    case('less_' + t, 0, 'less {}, {}', [x, y], [x < y])


def casts(dtype, t):
    wide = torch.cat([torch.randn(64) * 10, special(torch.float32),
                      torch.linspace(-70000, 70000, 33)])
    other = torch.float16 if dtype == torch.bfloat16 else torch.bfloat16
    x = special(dtype)
    integers = torch.tensor([0, 1, -1, 255, 257, 2049, -65519, 123456789])
    finite = normal(dtype, 19) * 100
    for name, source, to in (
            ('from_f32', wide, dtype), ('to_f32', x, torch.float32),
            ('to_other', x, other), ('from_i64', integers, dtype),
            ('to_i64', finite, torch.int64)):
        result = source.to(to)
        case('cast_%s_%s' % (name, t), 0, 'cast {}', [source], [result],
             '%s to %s' % (mlir(source), mlir(result)))


def reductions(dtype, t):
    x = normal(dtype, 37, 65)
    for axes in [0], [1], [0, 1]:
        where = 'axes %s' % axes
        tag = ''.join(map(str, axes)) + '_' + t
        case('reduce_sum_' + tag, 1, 'reduce_sum {} ' + where, [x],
             rounded(lambda v: v.sum(axes), [x], dtype))
        case('reduce_mean_' + tag, 1, 'reduce_mean {} ' + where, [x],
             rounded(lambda v: v.mean(axes), [x], dtype))
        case('reduce_max_' + tag, 0, 'reduce_max {} ' + where, [x],
             [x.amax(axes)])


def rows(dtype, t):
    x, dy = normal(dtype, 9, 33) * 3, normal(dtype, 9, 33)
    same = mlir(x)
    for name, function in ('softmax', F.softmax), ('log_softmax', F.log_softmax):
        y = rounded(lambda v: function(v, 1), [x], dtype)
        case('%s_%s' % (name, t), 1, name + ' {} axis 1', [x], y, same)
        wide = y[0].double()
        if name == 'softmax':
            grad = (dy.double() - (dy.double() * wide).sum(1, True)) * wide
        else:
            grad = dy.double() - wide.exp() * dy.double().sum(1, True)
        case('%s_grad_%s' % (name, t), 1, name + '_grad {}, {} axis 1',
             [dy, y[0]], [grad.float().to(dtype)], same)
    labels = torch.tensor([3, 0, 32, 7, -100, 5, 5, 1, 9])
    wide = x.double()
    loss = F.cross_entropy(wide, labels).float()
    lse = wide.logsumexp(1).float()
    case('cross_entropy_' + t, 8, 'cross_entropy {}, {} {{axis = 1 : i64}}',
         [x, labels], [loss, lse])
    seed = torch.tensor(0.75)
    grad = gradients(lambda v: F.cross_entropy(v, labels), [x], seed)[0]
    case('cross_entropy_grad_' + t, 1,
         'cross_entropy_grad {}, {}, {}, {} {{axis = 1 : i64}}',
         [seed, x, labels, lse], [grad.float().to(dtype)])


def norms(dtype, t):
    x, dy = normal(dtype, 9, 33), normal(dtype, 9, 33)
    s, b = normal(dtype, 33), normal(dtype, 33)
    wide = x.double()
    mean = wide.mean(1, keepdim=True)
    rstd = (wide.var(1, unbiased=False, keepdim=True) + 1e-5).rsqrt()
    y = F.layer_norm(wide, [33], s.double(), b.double(), 1e-5)
    case('layer_norm_' + t, 8,
         'layer_norm {}, {}, {} {{axis = 1 : i64, epsilon = 1.0e-05 : f64}}',
         [x, s, b], [y.float().to(dtype), mean.float(), rstd.float()])
    grads = gradients(lambda v, w, c: F.layer_norm(v, [33], w, c, 1e-5),
                      [x, s, b], dy)
    case('layer_norm_grad_' + t, 1, 'layer_norm_grad {}, {}, {}, {}, {} '
         '{{axis = 1 : i64}}', [dy, x, s, mean.float(), rstd.float()],
         [g.float().to(dtype) for g in grads])
    root = (wide.square().mean(1, keepdim=True) + 1e-6).rsqrt()
    case('rms_norm_' + t, 8,
         'rms_norm {}, {} {{axis = 1 : i64, epsilon = 1.0e-06 : f64}}', [x, s],
         [(wide * root * s.double()).float().to(dtype), root.float()])
    image, di = normal(dtype, 4, 3, 5, 5), normal(dtype, 4, 3, 5, 5)
    scale = normal(dtype, 3)
    wide = image.double()
    mean = wide.mean((0, 2, 3))
    rstd = (wide.var((0, 2, 3), unbiased=False) + 1e-5).rsqrt()
    grads = gradients(lambda v, w: F.batch_norm(
        v, None, None, w, torch.zeros(3).double(), True, 0.1, 1e-5),
        [image, scale], di)
    shift = di.double().sum((0, 2, 3))
    case('batch_norm_grad_' + t, 1, 'batch_norm_grad {}, {}, {}, {}, {}',
         [di, image, scale, mean.float(), rstd.float()],
         [g.float().to(dtype) for g in grads + [shift]])


def pools(dtype, t):
    x = normal(dtype, 2, 3, 9, 9)
    window = 'kernel [3, 3] strides [2, 2] pads [1, 1, 1, 1] dilations [1, 1]'
    y = F.max_pool2d(x.float(), 3, 2, 1).to(dtype)
    dy = normal(dtype, *y.shape)
    case('max_pool_' + t, 0, 'max_pool {} ' + window, [x], [y])
    grad = gradients(lambda v: F.max_pool2d(v, 3, 2, 1), [x], dy)[0]
    case('max_pool_grad_' + t, 0, 'max_pool_grad {}, {} ' + window, [dy, x],
         [grad.float().to(dtype)])
    pool = lambda v: F.avg_pool2d(v, 3, 2, 1, count_include_pad=False)
    case('avg_pool_' + t, 1, 'avg_pool {} ' + window, [x],
         rounded(pool, [x], dtype))
    grad = gradients(pool, [x], dy)[0]
    case('avg_pool_grad_' + t, 1,
         'avg_pool_grad {} input_shape [2, 3, 9, 9] ' + window, [dy],
         [grad.float().to(dtype)])


def tables(dtype, t):
    table = normal(dtype, 50, 6)
    indices = torch.tensor([[3, 49, 3, 0], [-1, 3, 3, 17], [3, 3, 3, 3]])
    case('gather_' + t, 0, 'gather {}, {} axis 0', [table, indices],
         [table[indices]])
    grad = normal(dtype, 3, 4, 6)
    total = torch.zeros(50, 6).double().index_put(
        (indices.flatten() % 50,), grad.double().view(12, 6), accumulate=True)
    case('gather_grad_' + t, 0, 'gather_grad {}, {} axis 0 data_shape [50, 6]',
         [grad, indices], [total.float().to(dtype)])
    columns = torch.tensor([1, 4, 1, 1])
    grad = normal(dtype, 3, 4, 2)
    total = torch.zeros(3, 5, 2).double().index_add(1, columns, grad.double())
    case('gather_grad_axis_' + t, 0,
         'gather_grad {}, {} axis 1 data_shape [3, 5, 2]', [grad, columns],
         [total.float().to(dtype)])


for dtype in torch.bfloat16, torch.float16:
    short = NAMES[dtype]
    elementwise(dtype, short)
    casts(dtype, short)
    reductions(dtype, short)
    rows(dtype, short)
    norms(dtype, short)
    pools(dtype, short)
    tables(dtype, short)
