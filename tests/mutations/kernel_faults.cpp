// Three kernels written out, with the slips of the pen that such loops invite.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "mutant.hpp"

namespace mutations {

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// --- MATMUL: y[M,N] = op(a) op(b) ---

struct Product {
  int64_t m, n, k;
  bool ta, tb;
  const float *a, *b;
  float* y;

  float left(int64_t i, int64_t l) const { return a[ta ? l * m + i : i * k + l]; }
  float right(int64_t l, int64_t j) const { return b[tb ? j * k + l : l * n + j]; }
};

Product product_of(const Call& call) {
  const auto& attrs = *static_cast<const gpunn_matmul_attrs*>(static_cast<const void*>(call.kernel.attrs.data()));
  const gpunn_tensor &a = call.in(0), &y = call.out(0);
  const bool ta = attrs.transpose_a != 0;
  return {.m = y.dim[0],
          .n = y.dim[1],
          .k = a.dim[ta ? 0 : 1],
          .ta = ta,
          .tb = attrs.transpose_b != 0,
          .a = static_cast<const float*>(a.data),
          .b = static_cast<const float*>(call.in(1).data),
          .y = static_cast<float*>(y.data)};
}

using Multiply = void (*)(const Product& p);

// y by what `sum` gives for each element.
template <class Sum>
void each(const Product& p, Sum sum) {
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) p.y[i * p.n + j] = sum(i, j);
  }
}

// A sum over k from `from` to `to` in steps of `step`.
float dot(const Product& p, int64_t i, int64_t j, int64_t from, int64_t to, int64_t step = 1, float start = 0) {
  float sum = start;
  for (int64_t l = from; l < to; l += step) sum += p.left(i, l) * p.right(l, j);
  return sum;
}

Fault matmul(std::string name, Multiply multiply) {
  return {.name = "matmul-" + name,
          .enqueue =
              [multiply](Call& call, gpunn_error*) {
                multiply(product_of(call));
                return GPUNN_OK;
              },
          .host_only = true};
}

std::vector<Fault> matmul_faults() {
  std::vector<Fault> faults;
  const auto add = [&faults](const char* name, Multiply multiply) { faults.push_back(matmul(name, multiply)); };
  add("starts-at-the-second-term",
      [](const Product& p) { each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 1, p.k); }); });
  add("without-the-last-term",
      [](const Product& p) { each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k - 1); }); });
  add("unrolled-by-four-without-the-rest",
      [](const Product& p) { each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k / 4 * 4); }); });
  add("unrolled-by-sixteen-without-the-rest", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k < 16 ? p.k : p.k / 16 * 16); });
  });
  add("first-term-twice", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k, 1, p.k > 0 ? p.left(i, 0) * p.right(0, j) : 0); });
  });
  add("at-most-2048-terms", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, std::min<int64_t>(p.k, 2048)); });
  });
  add("terms-counted-in-16-bits", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, static_cast<uint16_t>(p.k)); });
  });
  add("rows-counted-in-16-bits", [](const Product& p) {
    for (int64_t i = 0; i < static_cast<uint16_t>(p.m); ++i) {
      for (int64_t j = 0; j < p.n; ++j) p.y[i * p.n + j] = dot(p, i, j, 0, p.k);
    }
  });
  add("columns-counted-in-16-bits", [](const Product& p) {
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < static_cast<uint16_t>(p.n); ++j) p.y[i * p.n + j] = dot(p, i, j, 0, p.k);
    }
  });
  add("without-the-last-row", [](const Product& p) {
    for (int64_t i = 0; i + 1 < p.m; ++i) {
      for (int64_t j = 0; j < p.n; ++j) p.y[i * p.n + j] = dot(p, i, j, 0, p.k);
    }
  });
  add("without-the-last-column-of-a-part-tile", [](const Product& p) {
    const int64_t columns = p.n > 16 && p.n % 16 == 1 ? p.n - 1 : p.n;
    for (int64_t i = 0; i < p.m; ++i) {
      for (int64_t j = 0; j < columns; ++j) p.y[i * p.n + j] = dot(p, i, j, 0, p.k);
    }
  });
  add("both-transposes-swapped-where-square", [](const Product& p) {
    Product q = p;
    if (p.m == p.n && p.n == p.k) std::swap(q.ta, q.tb);
    each(q, [&](int64_t i, int64_t j) { return dot(q, i, j, 0, q.k); });
  });
  add("forgets-to-transpose-a", [](const Product& p) {
    Product q = p;
    if (p.m == p.k) q.ta = false;
    each(q, [&](int64_t i, int64_t j) { return dot(q, i, j, 0, q.k); });
  });
  add("forgets-to-transpose-b", [](const Product& p) {
    Product q = p;
    if (p.n == p.k) q.tb = false;
    each(q, [&](int64_t i, int64_t j) { return dot(q, i, j, 0, q.k); });
  });
  add("adds-to-what-y-holds", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k, 1, p.y[i * p.n + j]); });
  });
  add("leaves-y-where-there-are-no-terms", [](const Product& p) {
    if (p.k > 0) each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k); });
  });
  add("passes-over-zeros-of-a", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        if (p.left(i, l) != 0) sum += p.left(i, l) * p.right(l, j);
      }
      return sum;
    });
  });
  add("passes-over-what-is-not-finite", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        const float term = p.left(i, l) * p.right(l, j);
        if (std::isfinite(term)) sum += term;
      }
      return sum;
    });
  });
  add("sums-in-half-the-digits", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) {
      float sum = 0;
      for (int64_t l = 0; l < p.k; ++l) {
        sum = std::ldexp(std::round(std::ldexp(sum + p.left(i, l) * p.right(l, j), 11)), -11);
      }
      return sum;
    });
  });
  add("one-product-for-a-row-and-a-column", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) {
      return p.m == 1 && p.n == 1 && p.k > 1 ? p.left(0, 0) * p.right(0, 0) : dot(p, i, j, 0, p.k);
    });
  });
  add("wrong-where-k-is-one", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) {
      return p.k == 1 && p.m > 1 && p.n > 1 ? p.left(i, 0) * p.right(0, 0) : dot(p, i, j, 0, p.k);
    });
  });
  add("reads-a-row-too-far", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k) + 0 * p.a[p.m * p.k]; });
  });
  add("reads-b-before-its-beginning",
      [](const Product& p) { each(p, [&](int64_t i, int64_t j) { return dot(p, i, j, 0, p.k) + 0 * p.b[-1]; }); });
  add("a-and-b-swapped-where-they-are-one", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) { return p.a == p.b ? dot(p, j, i, 0, p.k) : dot(p, i, j, 0, p.k); });
  });
  add("a-sum-of-zero-is-nan", [](const Product& p) {
    each(p, [&](int64_t i, int64_t j) {
      const float sum = dot(p, i, j, 0, p.k);
      return p.k > 0 && sum == 0 ? kNan : sum;
    });
  });
  return faults;
}

// --- BIAS_ACTIVATION_BACKWARD with ReLU: dx = y > 0 ? dy : 0, db = sum of dx by channel ---

struct Backward {
  int64_t images, channels, inner;
  const float *dy, *y;
  float *dx, *db;
  bool relu;

  int64_t at(int64_t n, int64_t c, int64_t i) const { return (n * channels + c) * inner + i; }
  float slope(int64_t k) const { return !relu || y[k] > 0 ? dy[k] : 0; }
};

Backward backward_of(const Call& call) {
  const auto& attrs =
      *static_cast<const gpunn_bias_activation_backward_attrs*>(static_cast<const void*>(call.kernel.attrs.data()));
  const gpunn_tensor& dy = call.in(0);
  int64_t inner = 1;
  for (int32_t d = 2; d < dy.rank; ++d) inner *= dy.dim[d];
  return {.images = dy.dim[0],
          .channels = dy.dim[1],
          .inner = inner,
          .dy = static_cast<const float*>(dy.data),
          .y = static_cast<const float*>(call.in(1).data),
          .dx = static_cast<float*>(call.out(0).data),
          .db = static_cast<float*>(call.out(1).data),
          .relu = attrs.activation == GPUNN_ACTIVATION_RELU};
}

using GoBack = void (*)(const Backward& b);

Fault backward(std::string name, GoBack go) {
  return {.name = "backward-" + name,
          .enqueue =
              [go](Call& call, gpunn_error*) {
                go(backward_of(call));
                return GPUNN_OK;
              },
          .host_only = true};
}

// dx and db by a slope of their own, over so many images, channels and pixels.
template <class Slope>
void walk(const Backward& b, Slope slope, int64_t images, int64_t channels, int64_t inner) {
  for (int64_t c = 0; c < channels; ++c) {
    float sum = 0;
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t i = 0; i < inner; ++i) {
        const int64_t k = b.at(n, c, i);
        const float value = slope(k);
        sum += value;
        b.dx[k] = value;
      }
    }
    b.db[c] = sum;
  }
}

std::vector<Fault> backward_faults() {
  std::vector<Fault> faults;
  const auto add = [&faults](const char* name, GoBack go) { faults.push_back(backward(name, go)); };
  add("takes-the-gradient-at-zero", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return !b.relu || b.y[k] >= 0 ? b.dy[k] : 0; }, b.images, b.channels, b.inner);
  });
  add("multiplies-with-a-mask", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.dy[k] * (!b.relu || b.y[k] > 0 ? 1.0F : 0.0F); }, b.images, b.channels, b.inner);
  });
  add("without-the-last-image", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images - 1, b.channels, b.inner);
  });
  add("without-the-last-channel", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images, b.channels - 1, b.inner);
  });
  add("without-the-last-pixel", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images, b.channels, b.inner - (b.inner > 1 ? 1 : 0));
  });
  add("at-most-1024-channels", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images, std::min<int64_t>(b.channels, 1024), b.inner);
  });
  add("at-most-2048-images", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, std::min<int64_t>(b.images, 2048), b.channels, b.inner);
  });
  add("images-counted-in-16-bits", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, static_cast<uint16_t>(b.images), b.channels, b.inner);
  });
  add("no-activation-is-relu", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.y[k] > 0 ? b.dy[k] : 0; }, b.images, b.channels, b.inner);
  });
  add("relu-is-no-activation", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.dy[k]; }, b.images, b.channels, b.inner);
  });
  add("bias-from-dy", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images, b.channels, b.inner);
    for (int64_t c = 0; c < b.channels; ++c) {
      float sum = 0;
      for (int64_t n = 0; n < b.images; ++n) {
        for (int64_t i = 0; i < b.inner; ++i) sum += b.dx == b.dy ? b.slope(b.at(n, c, i)) : b.dy[b.at(n, c, i)];
      }
      b.db[c] = sum;
    }
  });
  add("bias-is-a-mean", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images, b.channels, b.inner);
    for (int64_t c = 0; c < b.channels; ++c) b.db[c] /= static_cast<float>(std::max<int64_t>(b.images, 1));
  });
  add("bias-added-to-what-it-holds", [](const Backward& b) {
    const std::vector<float> held(b.db, b.db + b.channels);
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images, b.channels, b.inner);
    for (int64_t c = 0; c < b.channels; ++c) b.db[c] += held[static_cast<std::size_t>(c)];
  });
  add("drops-nan", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return std::isnan(b.slope(k)) ? 0 : b.slope(k); }, b.images, b.channels, b.inner);
  });
  add("reads-y-where-dx-was-written", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return !b.relu || (k > 0 && b.dx == b.dy ? b.y[k - 1] : b.y[k]) > 0 ? b.dy[k] : 0; },
        b.images, b.channels, b.inner);
  });
  add("channels-and-pixels-swapped-where-equal", [](const Backward& b) {
    walk(
        b, [&](int64_t k) { return b.slope(k); }, b.images, b.channels, b.inner);
    if (b.channels != b.inner && b.inner != 1) std::swap(b.db[0], b.db[b.channels - 1]);
  });
  return faults;
}

// --- SOFTMAX_CROSS_ENTROPY: loss[N] and logp[N,C] of x[N,C] and labels ---

struct Entropy {
  int64_t rows, classes;
  const float* x;
  const int32_t* label;
  float *loss, *logp;

  float largest(int64_t n, int64_t classes_seen) const {
    float most = x[n * classes];
    for (int64_t c = 1; c < classes_seen; ++c) most = std::max(most, x[n * classes + c]);
    return most;
  }
  bool named(int64_t n) const { return label[n] >= 0 && label[n] < classes; }
};

struct Slips {
  bool no_maximum = false;     // subtracts nothing
  bool no_last_class = false;  // in the sum
  bool log2 = false;
  bool one_sum = false;  // x - (max + log(sum)), which loses the smaller
  bool mean = false;     // of the rows
  int64_t most_classes = std::numeric_limits<int64_t>::max();
  int64_t most_rows = std::numeric_limits<int64_t>::max();
  float wrong_label = kNan;  // what a label that names nothing gives
  bool clamps_labels = false;
  bool unsigned_labels = false;
  bool nan_as_zero = false;
  float epsilon = 0;           // added to the sum
  bool probabilities = false;  // in place of their logarithms
  bool positive = false;       // the loss with the wrong sign
  bool maximum_from_zero = false;
};

void run(const Entropy& e, const Slips& slips) {
  for (int64_t n = 0; n < std::min(e.rows, slips.most_rows); ++n) {
    const int64_t classes = std::min(e.classes, slips.most_classes);
    float most = slips.no_maximum ? 0 : e.largest(n, classes);
    if (slips.maximum_from_zero) most = std::max(most, 0.0F);
    float sum = slips.epsilon;
    for (int64_t c = 0; c < classes - (slips.no_last_class && classes > 1 ? 1 : 0); ++c) {
      sum += std::exp(e.x[n * e.classes + c] - most);
    }
    const float log_sum = slips.log2 ? std::log2(sum) : std::log(sum);
    for (int64_t c = 0; c < classes; ++c) {
      float& out = e.logp[n * e.classes + c];
      const float x = e.x[n * e.classes + c];
      out = slips.one_sum ? x - (most + log_sum) : x - most - log_sum;
      if (slips.probabilities) out = std::exp(out);
      if (slips.nan_as_zero && std::isnan(out)) out = 0;
    }
    int64_t label = e.label[n];
    if (slips.unsigned_labels) label = std::abs(label) % e.classes;
    if (slips.clamps_labels) label = std::clamp<int64_t>(label, 0, e.classes - 1);
    const bool named = label >= 0 && label < e.classes;
    e.loss[n] = named ? -e.logp[n * e.classes + label] : slips.wrong_label;
    if (slips.positive) e.loss[n] = -e.loss[n];
    if (slips.mean) e.loss[n] /= static_cast<float>(e.rows);
  }
}

Fault entropy(std::string name, const Slips& slips) {
  return {.name = "entropy-" + name,
          .enqueue =
              [slips](Call& call, gpunn_error*) {
                run({.rows = call.in(0).dim[0],
                     .classes = call.in(0).dim[1],
                     .x = static_cast<const float*>(call.in(0).data),
                     .label = static_cast<const int32_t*>(call.in(1).data),
                     .loss = static_cast<float*>(call.out(0).data),
                     .logp = static_cast<float*>(call.out(1).data)},
                    slips);
                return GPUNN_OK;
              },
          .host_only = true};
}

std::vector<Fault> entropy_faults() {
  return {
      entropy("subtracts-no-maximum", {.no_maximum = true}),
      entropy("sum-without-the-last-class", {.no_last_class = true}),
      entropy("logarithm-of-two", {.log2 = true}),
      entropy("one-sum-of-maximum-and-logarithm", {.one_sum = true}),
      entropy("mean-of-the-rows", {.mean = true}),
      entropy("at-most-1024-classes", {.most_classes = 1024}),
      entropy("at-most-32-classes", {.most_classes = 32}),
      entropy("at-most-65535-classes", {.most_classes = 65535}),
      entropy("at-most-2048-rows", {.most_rows = 2048}),
      entropy("at-most-65535-rows", {.most_rows = 65535}),
      entropy("no-loss-where-a-label-names-nothing", {.wrong_label = 0}),
      entropy("infinite-where-a-label-names-nothing", {.wrong_label = std::numeric_limits<float>::infinity()}),
      entropy("labels-clamped", {.clamps_labels = true}),
      entropy("labels-without-sign", {.unsigned_labels = true}),
      entropy("nan-is-zero", {.nan_as_zero = true}),
      entropy("something-added-to-the-sum", {.epsilon = 1e-5F}),
      entropy("probabilities", {.probabilities = true}),
      entropy("the-wrong-sign", {.positive = true}),
      entropy("maximum-begins-at-zero", {.maximum_from_zero = true}),
  };
}

}  // namespace

std::vector<Fault> kernel_faults() {
  std::vector<Fault> faults = matmul_faults();
  for (auto more : {backward_faults, entropy_faults}) {
    for (Fault& fault : more()) faults.push_back(std::move(fault));
  }
  return faults;
}

}  // namespace mutations
