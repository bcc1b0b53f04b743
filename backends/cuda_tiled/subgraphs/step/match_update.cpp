// The update of a training step: bounds of the gradients, optimizers, and averages of the parameters.
#include <algorithm>
#include <array>
#include <initializer_list>
#include <vector>

#include "common/counter.hpp"
#include "common/elementwise.hpp"
#include "common/optimizer.hpp"
#include "subgraphs/step/match_ranks.hpp"
#include "subgraphs/step/match_search.hpp"

namespace gpunn::cuda_tiled {
namespace {

using namespace backends;

class UpdateMatcher {
 public:
  explicit UpdateMatcher(StepSearch& search)
      : search_(search), desc_(search.desc), pattern_(search.pattern), match_(search.match) {}

  void run() {
    StepNetwork& network = match_.network;
    network.flat = true;
    for (const auto& [parameter, gradient] : search_.gradients) search_.leave(gradient);
    if (!search_.with.update) return;
    const std::size_t summed = search_.world > 1 ? sums_over_ranks() : pattern_.begin();
    std::vector<std::size_t> optimizers;
    for (std::size_t i = pattern_.begin(); i < pattern_.end(); ++i) {
      if (pattern_.taken(i)) continue;
      const auto inputs = desc_.inputs(i);
      const bool gradient = std::any_of(inputs.begin(), inputs.end(), [&](int32_t id) { return is_gradient(id); });
      const bool parameter = std::any_of(inputs.begin(), inputs.end(), [&](int32_t id) { return is_parameter(id); });
      if (!gradient && !parameter) continue;
      require(i >= summed, "gradients that are used before the ranks have added them");
      flat_op(i, optimizers);
    }
    require(!optimizers.empty(), "no optimizer");
    require_apart(true);
    require_apart(false);
    if (network.flat_ops.size() == 1) plain_optimizer(optimizers[0]);
    if (network.before_norm >= 0) {
      const std::size_t history = pattern_.find({GPUNN_OP_TABLE_STORE}, {-1, match_.values.step, norm_});
      if (history != Pattern::kNone) {
        pattern_.take(history, "");
        match_.values.norm_history = pattern_.input(history, 0);
        network.norm_history = table_store_of(search_.op(history)).length;
        search_.leave(pattern_.output(history));
      }
      if (pattern_.needed(norm_)) {
        match_.values.norm = norm_;
        search_.leave(norm_);
      }
    }
  }

 private:
  // The ops that add all gradients over the ranks, in place. Returns where the last one is.
  std::size_t sums_over_ranks() {
    std::vector<int32_t> gradients;
    for (const auto& [parameter, gradient] : search_.gradients) gradients.push_back(gradient);
    const GradientSums sums = take_gradient_sums(
        pattern_, search_.world, [&](int32_t id) { return is_gradient(id); }, gradients);
    for (const int32_t value : sums.values) search_.leave(value);
    match_.network.world = search_.world;
    return sums.last;
  }

  bool is_gradient(int32_t id) const { return desc_.value(id).root == desc_.value(match_.values.gradients.id).root; }
  bool is_parameter(int32_t id) const { return desc_.value(id).root == desc_.value(match_.values.parameters.id).root; }

  // At most one optimizer, and at most one average, for an element.
  void require_apart(bool averages) const {
    const auto& ops = match_.network.flat_ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      for (std::size_t j = i + 1; j < ops.size(); ++j) {
        const auto of_kind = [&](FlatKind kind) {
          return kind >= FlatKind::sgd && (kind == FlatKind::average) == averages;
        };
        require(!of_kind(ops[i].kind) || !of_kind(ops[j].kind) || ops[i].to <= ops[j].from || ops[j].to <= ops[i].from,
                "two optimizers of one parameter");
      }
    }
  }

  FlatOp range_of(int32_t id) const {
    FlatOp flat;
    flat.from = narrow(desc_.value(id).offset / 4);
    flat.to = narrow(flat.from + plugin::element_count(desc_.tensor(id)));
    return flat;
  }

  void flat_op(std::size_t i, std::vector<std::size_t>& optimizers) {
    StepNetwork& network = match_.network;
    require(network.flat_ops.size() < kMostFlatOps, "too many ops on the gradients");
    FlatOp flat = range_of(pattern_.input(i, 0));
    std::array<int32_t, 2> states{-1, -1};
    const auto in_place = [&](int32_t id) {
      require(pattern_.same(pattern_.output(i), id), "gradients bounded elsewhere than in place");
      search_.leave(pattern_.output(i));
    };
    const auto optimizer = [&](FlatKind kind, int64_t decayed, float decay, std::initializer_list<std::size_t> at) {
      flat.kind = kind;
      flat.decayed = narrow(flat.from + decayed);
      flat.decay = decay;
      const int32_t g = pattern_.input(i, 1);
      require(is_parameter(pattern_.input(i, 0)) && is_gradient(g) &&
                  desc_.value(g).offset == desc_.value(pattern_.input(i, 0)).offset,
              "an optimizer of other gradients");
      flat.rate = rate_of(pattern_.input(i, 2));
      std::size_t state = 0;
      for (const std::size_t input : at) states[state++] = pattern_.input(i, input);
      for (const int32_t output : desc_.outputs(i)) search_.leave(output);
      optimizers.push_back(i);
    };
    switch (pattern_.op(i)) {
      case GPUNN_OP_NORM:
        require(network.before_norm < 0 && optimizers.empty(), "several norms of gradients");
        for (const auto& [parameter, gradient] : search_.gradients) {
          const FlatOp part = range_of(gradient);
          require(part.from >= flat.from && part.to <= flat.to, "a norm of some gradients");
        }
        network.before_norm = static_cast<int>(network.flat_ops.size());
        norm_ = pattern_.output(i);
        network.flat_size = std::max<int64_t>(network.flat_size, flat.to);
        pattern_.take(i, "");
        return;
      case GPUNN_OP_CLIP_NORM: {
        require(network.before_norm >= 0 && pattern_.input(i, 1) == norm_, "another norm of gradients");
        const gpunn_clip_norm_attrs attrs = clip_norm_of(search_.op(i)).attrs;
        flat.kind = FlatKind::clip_norm;
        flat.a = attrs.max_norm;
        flat.c = attrs.epsilon;
        flat.option = attrs.rescale;
        in_place(pattern_.input(i, 0));
        break;
      }
      case GPUNN_OP_L1_GRADIENT: {
        const L1Gradient l1 = l1_gradient_of(search_.op(i));
        flat.kind = FlatKind::l1;
        flat.a = l1.weight;
        flat.decayed = narrow(flat.from + l1.decayed);
        require(is_parameter(pattern_.input(i, 1)) &&
                    desc_.value(pattern_.input(i, 1)).offset == desc_.value(pattern_.input(i, 0)).offset,
                "an L1 penalty of other parameters");
        in_place(pattern_.input(i, 0));
        break;
      }
      case GPUNN_OP_CLAMP: {
        const auto clamp = search_.op(i).attrs<gpunn_clamp_attrs>();
        flat.kind = FlatKind::clamp;
        flat.a = clamp.low;
        flat.b = clamp.high;
        in_place(pattern_.input(i, 0));
        break;
      }
      case GPUNN_OP_SGD_UPDATE: {
        const gpunn_sgd_attrs attrs = sgd_of(search_.op(i)).attrs;
        flat.a = attrs.momentum;
        flat.option = attrs.nesterov;
        if (attrs.momentum != 0.0F) {
          optimizer(FlatKind::sgd, attrs.decayed, attrs.weight_decay, {3});
        } else {
          optimizer(FlatKind::sgd, attrs.decayed, attrs.weight_decay, {});
        }
        break;
      }
      case GPUNN_OP_ADAM_UPDATE: {
        const gpunn_adam_attrs attrs = adam_of(search_.op(i)).attrs;
        require(match_.values.step < 0 || pattern_.input(i, 3) == match_.values.step,
                "an optimizer that counts otherwise");
        search_.use_step(pattern_.input(i, 3));
        for (const FlatOp& other : network.flat_ops) {
          require(other.kind != FlatKind::adam || (other.a == attrs.beta1 && other.b == attrs.beta2),
                  "Adams of several betas");
        }
        network.adam = attrs;
        network.optimizer = StepOptimizer::adam;
        flat.a = attrs.beta1;
        flat.b = attrs.beta2;
        flat.c = attrs.epsilon;
        flat.option = attrs.decoupled;
        optimizer(FlatKind::adam, attrs.decayed, attrs.weight_decay, {4, 5});
        break;
      }
      case GPUNN_OP_RMSPROP_UPDATE: {
        const gpunn_rmsprop_attrs attrs = rmsprop_of(search_.op(i)).attrs;
        flat.a = attrs.alpha;
        flat.b = attrs.momentum;
        flat.c = attrs.epsilon;
        if (attrs.momentum != 0.0F) {
          optimizer(FlatKind::rmsprop, attrs.decayed, attrs.weight_decay, {3, 4});
        } else {
          optimizer(FlatKind::rmsprop, attrs.decayed, attrs.weight_decay, {3});
        }
        break;
      }
      case GPUNN_OP_ADAGRAD_UPDATE: {
        const gpunn_adagrad_attrs attrs = adagrad_of(search_.op(i)).attrs;
        flat.c = attrs.epsilon;
        optimizer(FlatKind::adagrad, attrs.decayed, attrs.weight_decay, {3});
        break;
      }
      case GPUNN_OP_LION_UPDATE: {
        const gpunn_lion_attrs attrs = lion_of(search_.op(i)).attrs;
        flat.a = attrs.beta1;
        flat.b = attrs.beta2;
        optimizer(FlatKind::lion, attrs.decayed, attrs.weight_decay, {3});
        break;
      }
      case GPUNN_OP_AXPBY: {
        require(!optimizers.empty(), "an average before the optimizer");
        const auto axpby = search_.op(i).attrs<gpunn_axpby_attrs>();
        const bool second = is_parameter(pattern_.input(i, 1));
        const int32_t average = pattern_.input(i, second ? 0 : 1);
        require(!is_parameter(average) && !is_gradient(average) && pattern_.same(pattern_.output(i), average),
                "a sum that is no average of the parameters");
        flat = range_of(pattern_.input(i, second ? 1 : 0));
        flat.kind = FlatKind::average;
        flat.a = second ? axpby.alpha : axpby.beta;
        flat.b = second ? axpby.beta : axpby.alpha;
        states[0] = average;
        search_.leave(pattern_.output(i));
        break;
      }
      default:
        throw Refusal(op_text(desc_, i) + " between the gradients and the optimizer");
    }
    for (std::size_t s = 0; s < states.size(); ++s) {
      // An op on views begins its states where its views begin.
      match_.values.flat_states[network.flat_ops.size()][s] = {states[s], int64_t{flat.from} * 4};
    }
    network.flat_ops.push_back(flat);
    network.flat_size = std::max<int64_t>(network.flat_size, flat.to);
    pattern_.take(i, "");
  }

  // A learning rate, and by how much it is scaled.
  float rate_of(int32_t id) {
    std::size_t made = pattern_.producer(id, pattern_.end());
    float factor = 1.0F;
    if (made != Pattern::kNone && pattern_.op(made) == GPUNN_OP_SCALE) {
      factor = search_.op(made).attrs<gpunn_scale_attrs>().factor;
      pattern_.take(made, "");
      made = pattern_.producer(pattern_.input(made, 0), made);
    }
    require(made != Pattern::kNone && pattern_.op(made) == GPUNN_OP_TABLE_LOAD &&
                search_.op(made).input(0).dtype == GPUNN_F32,
            "a learning rate that comes from no table");
    if (rate_ != Pattern::kNone) {
      require(made == rate_, "several learning rates");
      return factor;
    }
    rate_ = pattern_.take(made, "");
    search_.use_step(pattern_.input(made, 1));
    match_.network.rates = table_load_of(search_.op(made)).length;
    match_.values.rate_table = search_.from_outside(pattern_.input(made, 0));
    return factor;
  }

  // A single SGD or Adam, which the plain kernels know.
  void plain_optimizer(std::size_t at) {
    StepNetwork& network = match_.network;
    const FlatOp& flat = network.flat_ops[0];
    if (network.before_norm >= 0 || flat.rate != 1.0F) return;
    if (flat.kind == FlatKind::sgd) {
      network.optimizer = StepOptimizer::sgd;
      network.sgd = sgd_of(search_.op(at)).attrs;
      network.sgd.decayed = flat.decayed;
    } else if (flat.kind == FlatKind::adam) {
      network.adam.decayed = flat.decayed;
    } else {
      return;
    }
    match_.values.state1 = match_.values.flat_states[0][0];
    match_.values.state2 = match_.values.flat_states[0][1];
    network.flat = false;
  }

  StepSearch& search_;
  const plugin::ProgramDesc& desc_;
  Pattern& pattern_;
  StepMatch& match_;
  std::size_t rate_ = Pattern::kNone;  // the op that loads the learning rate
  int32_t norm_ = -1;                  // of the gradients
};

}  // namespace

void match_update(StepSearch& search) { UpdateMatcher(search).run(); }

}  // namespace gpunn::cuda_tiled
