// Recurrent networks over sequences. ONNX has the batch behind the steps, [T, N, features]; layers have it in front.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string_view>

#include "interchange/onnx/elements.hpp"
#include "interchange/onnx/importer.hpp"
#include "interchange/onnx/placement.hpp"

namespace gpunn::interchange {

namespace {

// A function of a cell: its name in a layer's keys, and the numbers that it has. Those without a default have to be in
// the file: ONNX leaves open what they are.
struct GateFunction {
  std::string_view onnx, name;
  bool has_alpha = false, has_beta = false;
  std::optional<double> alpha = {}, beta = {};
};
constexpr GateFunction kGateFunctions[] = {{"relu", "relu"},
                                           {"tanh", "tanh"},
                                           {"sigmoid", "sigmoid"},
                                           {"softsign", "softsign"},
                                           {"softplus", "softplus"},
                                           {"affine", "affine", true, true},
                                           {"leakyrelu", "leaky_relu", true, false, 0.01},
                                           {"thresholdedrelu", "thresholded_relu", true},
                                           {"scaledtanh", "scaled_tanh", true, true},
                                           {"hardsigmoid", "hard_sigmoid", true, true, 0.2, 0.5},
                                           {"elu", "elu", true, false, 1.0}};

// What the three operators differ in. `gates` are ONNX's numbers of the gates in the order of layers; `functions` are
// the beginnings of the keys of the functions, in ONNX's order.
struct Kind {
  const char* layer;
  std::vector<int64_t> gates;
  std::vector<std::pair<std::string, std::string>> functions;  // with their defaults
  bool has_cell = false;
};

// The functions of one direction, as keys of a layer.
std::vector<Keys> functions_of(const Call& call, const Kind& kind, std::size_t directions) {
  std::vector<std::string> names;
  for (const Attribute& attribute : call.node().attributes) {
    if (attribute.name != "activations") continue;
    const auto* given = std::get_if<std::vector<std::string>>(&attribute.value);
    if (given == nullptr) throw Unsupported("its attribute activations must be names");
    names = *given;
  }
  const std::size_t count = kind.functions.size();
  if (names.empty()) {
    for (std::size_t i = 0; i < directions * count; ++i) names.push_back(kind.functions[i % count].second);
  }
  if (names.size() != directions * count) {
    throw Unsupported("its attribute activations must be " + std::to_string(directions * count) + " names");
  }
  const std::vector<float> alphas = call.numbers("activation_alpha"), betas = call.numbers("activation_beta");
  std::size_t next_alpha = 0, next_beta = 0;
  // Each function takes the next of the numbers that it has.
  const auto number = [](const std::vector<float>& given, std::size_t& next, const std::optional<double>& fallback,
                         const std::string& name) {
    if (next < given.size()) return static_cast<double>(given[next++]);
    if (!fallback) throw Unsupported("does not say the numbers of its activation " + name);
    return *fallback;
  };
  std::vector<Keys> result(directions);
  for (std::size_t i = 0; i < names.size(); ++i) {
    std::string name = names[i];
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    const auto* const found = std::ranges::find(kGateFunctions, name, &GateFunction::onnx);
    if (found == std::end(kGateFunctions)) throw Unsupported("its activation " + names[i] + " is not known");
    const std::string& prefix = kind.functions[i % count].first;
    Keys& keys = result[i / count];
    keys.push_back({prefix + "activation", {std::string(found->name)}});
    if (found->has_alpha) {
      keys.push_back({prefix + "alpha", {text(number(alphas, next_alpha, found->alpha, names[i]))}});
    }
    if (found->has_beta) keys.push_back({prefix + "beta", {text(number(betas, next_beta, found->beta, names[i]))}});
  }
  return result;
}

// The batch in front, where the file has it at `place`: layers take rows of these dimensions.
Value in_front(Call& call, std::size_t input, bool layout, const Shape& row) {
  const Value& x = call.data_anywhere(input);
  std::vector<int64_t> order = {1, 0, 2};
  if (layout) order = {0, 1, 2};
  if (x.shape.size() != 3) throw Unsupported("input " + std::to_string(input) + " is " + to_string(x.shape));
  Value turned = moved(call, x, order);
  const bool is_rows = !is_placed(turned) && turned.shape.front() == Size{1, true} && !turned.shape[1].of_batch &&
                       !turned.shape[2].of_batch;
  if (!is_rows) {
    throw Unsupported("takes " + to_string(x.shape) + " with the steps of a sequence in dimension " +
                      (layout ? "1" : "0") + ", so that the batch must be dimension " + (layout ? "0" : "1") +
                      "; export the network with the batch first, as PyTorch's batch_first");
  }
  if (!row.empty() && row_of(turned) != row) {
    throw Unsupported("its first state is " + to_string(x.shape) + "; a sample's must be " + gpunn::to_string(row));
  }
  return turned;
}

// The numbers of a constant of these sizes.
const std::vector<float>& numbers_of(const Call& call, std::size_t input, const char* what, const Shape& shape) {
  const Constant& found = call.floats(input, what);
  if (found.shape != shape) {
    throw Unsupported(std::string(what) + " are " + gpunn::to_string(found.shape) + ", expected " +
                      gpunn::to_string(shape));
  }
  return *found.floats;
}

Value sliced_row(Call& call, const Value& x, std::size_t dimension, int64_t start, int64_t size) {
  Shape row = row_of(x);
  if (row[dimension] == size) return x;
  row[dimension] = size;
  return call.layer("slice", {&x},
                    {{"dimension", {std::to_string(dimension)}},
                     {"start", {std::to_string(start)}},
                     {"size", {std::to_string(size)}}},
                    row);
}

// A node, read.
class Recurrent {
 public:
  Recurrent(Call& call, Kind kind) : call_(call), kind_(std::move(kind)) {
    const std::string direction = call.word("direction", "forward");
    if (direction != "forward" && direction != "reverse" && direction != "bidirectional") {
      throw Unsupported("its direction " + direction + " is not known");
    }
    directions_ = direction == "bidirectional" ? 2 : 1;
    layout_ = call.integer("layout", 0) != 0;
    x_ = in_front(call, 0, layout_, {});
    steps_ = x_.shape[1].factor;
    const Constant& weights = call.floats(2, "the weights of the state");
    if (weights.shape.size() != 3 || weights.shape[2] < 1) {
      throw Unsupported("the weights of its state are " + gpunn::to_string(weights.shape));
    }
    units_ = weights.shape[2];
    if (call.integer("hidden_size", units_) != units_) throw Unsupported("its hidden_size is not that of its weights");
    require_whole_sequences();
    keys_ = {{"units", {std::to_string(units_)}}, {"bias", {text(call.has(3))}}};
    if (call.has_attribute("clip")) keys_.push_back({"clip", {text(call.number("clip", 0))}});
    if (kind_.has_cell) {
      keys_.push_back({"peepholes", {text(call.has(7))}});
      keys_.push_back({"coupled_gates", {text(call.integer("input_forget", 0) != 0)}});
    }
    if (std::string_view(kind_.layer) == "gru") {
      keys_.push_back({"linear_before_reset", {text(call.integer("linear_before_reset", 0) != 0)}});
    }
    const std::vector<Keys> functions = functions_of(call, kind_, static_cast<std::size_t>(directions_));
    // A layer has the same functions in both directions.
    if (directions_ == 2 && functions[0] != functions[1]) {
      layers_.push_back({"forward", functions[0], 0, 1});
      layers_.push_back({"reverse", functions[1], 1, 1});
    } else {
      layers_.push_back({direction, functions[0], 0, directions_});
    }
  }

  void give() {
    const bool wants_states = is_used(0), wants_last = is_used(1), wants_cell = kind_.has_cell && is_used(2);
    const std::string output = wants_cell ? "sequence_and_cell" : wants_states || !wants_last ? "sequence" : "last";
    std::vector<Value> states, last, cells;  // of each direction: [1, steps, units], [1, units]
    for (const Layer& one : layers_) {
      const Value y = layer(one, output);
      for (int64_t i = 0; i < one.directions; ++i) {
        if (output == "last") {
          last.push_back(sliced_row(call_, call_.reshaped(y, {one.directions, units_}), 0, i, 1));
          continue;
        }
        const int64_t rows = row_of(y)[0];
        const Value own = call_.reshaped(sliced_row(call_, call_.reshaped(y, {rows, one.directions, units_}), 1, i, 1),
                                         {1, rows, units_});
        states.push_back(sliced_row(call_, own, 1, 0, steps_));
        const bool is_reverse = one.direction == "reverse" || i == 1;
        if (wants_last) {
          last.push_back(call_.reshaped(sliced_row(call_, own, 1, is_reverse ? 0 : steps_ - 1, 1), {1, units_}));
        }
        if (wants_cell) cells.push_back(call_.reshaped(sliced_row(call_, own, 1, steps_, 1), {1, units_}));
      }
    }
    if (!states.empty() && (wants_states || !wants_last)) {
      const Value y = call_.transposed(joined(states), {1, 0, 2});
      call_.give(0, layout_ ? y : moved(call_, y, {1, 2, 0, 3}));
    }
    if (wants_last) call_.give(1, placed_state(joined(last)));
    if (wants_cell) call_.give(2, placed_state(joined(cells)));
  }

 private:
  // One layer of gpunn for one direction or both.
  struct Layer {
    std::string direction;
    Keys functions;
    int64_t first, directions;
  };

  bool is_used(std::size_t output) const {
    const std::vector<std::string>& names = call_.node().outputs;
    return output < names.size() && !names[output].empty() && call_.importer().is_used(names[output]);
  }

  void require_whole_sequences() const {
    if (!call_.has(4)) return;
    for (const int64_t length : call_.integers(4, "the lengths of the sequences")) {
      if (length != steps_) {
        throw Unsupported("a sequence of " + std::to_string(length) + " of " + std::to_string(steps_) +
                          " steps; layers take sequences of one length");
      }
    }
  }

  Value placed_state(const Value& state) { return layout_ ? state : moved(call_, state, {1, 0, 2}); }

  Value joined(const std::vector<Value>& directions) {
    if (directions.size() == 1) return directions.front();
    Shape row = row_of(directions.front());
    row[0] = std::ssize(directions);
    std::vector<const Value*> from;
    for (const Value& one : directions) from.push_back(&one);
    return call_.layer("concat", from, {}, row, "directions");
  }

  // The state that a constant is for each sample, [directions, units]; all samples have the same.
  std::vector<float> state_of(std::size_t input) const {
    const Constant& found = call_.floats(input, "the first state");
    const std::size_t batch = layout_ ? 0 : 1;
    const Shape& shape = found.shape;
    if (shape.size() != 3 || shape[1 - batch] != directions_ || shape[2] != units_ || shape[batch] < 1) {
      throw Unsupported("its first state is " + gpunn::to_string(shape));
    }
    std::vector<float> state;
    for (int64_t d = 0; d < directions_; ++d) {
      for (int64_t u = 0; u < units_; ++u) {
        const auto at = [&](int64_t row) {
          const int64_t place = layout_ ? row * directions_ + d : d * shape[1] + row;
          return (*found.floats)[static_cast<std::size_t>(place * units_ + u)];
        };
        state.push_back(at(0));
        for (int64_t row = 1; row < shape[batch]; ++row) {
          if (at(row) != at(0)) throw Unsupported("its first state differs between the rows of the batch");
        }
      }
    }
    return state;
  }

  // The numbers of one direction's gates in the order of layers; `values` are [directions, parts * gates, size].
  Constant in_order(const std::vector<float>& values, int64_t direction, int64_t parts, int64_t of_part,
                    int64_t size) const {
    const int64_t gates = std::ssize(kind_.gates), block = units_ * size;
    std::vector<float> result;
    for (const int64_t gate : kind_.gates) {
      const int64_t start = ((direction * parts + of_part) * gates + gate) * block;
      std::copy_n(values.begin() + start, block, std::back_inserter(result));
    }
    Shape shape{std::ssize(result)};
    return floats_constant(std::move(shape), std::move(result));
  }

  void set_weights(const Value& y, const Layer& one) {
    const int64_t gates = std::ssize(kind_.gates), width = gates * units_, features = x_.shape[2].factor;
    const Shape of_input = {directions_, width, features}, of_state = {directions_, width, units_},
                of_biases = {directions_, 2 * width}, of_peepholes = {directions_, 3 * units_};
    const std::vector<float>& input = numbers_of(call_, 1, "the weights", of_input);
    const std::vector<float>& state = numbers_of(call_, 2, "the weights of the state", of_state);
    for (int64_t i = 0; i < one.directions; ++i) {
      const int64_t direction = one.first + i;
      const std::string suffix = one.direction == "reverse" || i == 1 ? "_l0_reverse" : "_l0";
      call_.set_tensor(y, "weight_ih" + suffix, {width, features}, in_order(input, direction, 1, 0, features));
      call_.set_tensor(y, "weight_hh" + suffix, {width, units_}, in_order(state, direction, 1, 0, units_));
      if (call_.has(3)) {
        const std::vector<float>& biases = numbers_of(call_, 3, "the biases", of_biases);
        call_.set_tensor(y, "bias_ih" + suffix, {width}, in_order(biases, direction, 2, 0, 1));
        call_.set_tensor(y, "bias_hh" + suffix, {width}, in_order(biases, direction, 2, 1, 1));
      }
      if (kind_.has_cell && call_.has(7)) {
        const std::vector<float>& peepholes = numbers_of(call_, 7, "the peepholes", of_peepholes);
        const auto begin = peepholes.begin() + direction * 3 * units_;
        call_.set_tensor(y, "weight_peephole" + suffix, {3 * units_},
                         floats_constant({3 * units_}, std::vector<float>(begin, begin + 3 * units_)));
      }
    }
  }

  // The rows of a state that a layer's directions have.
  Constant part_of(const std::vector<float>& state, const Layer& one) const {
    const auto begin = state.begin() + one.first * units_;
    return floats_constant({one.directions, units_}, std::vector<float>(begin, begin + one.directions * units_));
  }

  Value layer(const Layer& one, const std::string& output) {
    Keys keys = keys_;
    keys.push_back({"direction", {one.direction}});
    keys.push_back({"output", {output}});
    keys.insert(keys.end(), one.functions.begin(), one.functions.end());
    // Inputs of data are the first of the states; constants in front of them become data, too.
    const std::size_t states = kind_.has_cell ? 2 : 1;
    constexpr std::size_t kFirstState = 5;
    std::vector<Value> data;
    std::vector<std::vector<float>> constants(states,
                                              std::vector<float>(static_cast<std::size_t>(directions_ * units_)));
    bool is_trained = false;
    for (std::size_t i = states; i-- > 0;) {
      if (!call_.has(kFirstState + i)) {
        if (!data.empty()) data.push_back(as_data(data.front(), part_of(constants[i], one)));
        continue;
      }
      const Value& given = call_.input(kFirstState + i);
      if (given.constant) {
        constants[i] = state_of(kFirstState + i);
        is_trained = is_trained || given.constant->trained;
        if (!data.empty()) data.push_back(as_data(data.front(), part_of(constants[i], one)));
        continue;
      }
      const Value all = in_front(call_, kFirstState + i, layout_, {directions_, units_});
      data.push_back(sliced_row(call_, all, 0, one.first, one.directions));
    }
    std::vector<const Value*> from = {&x_};
    for (std::size_t i = data.size(); i-- > 0;) from.push_back(&data[i]);
    const auto is_zero = [](float value) { return value == 0; };
    const bool all_zero =
        std::ranges::all_of(constants, [&](const auto& state) { return std::ranges::all_of(state, is_zero); });
    const bool has_tensors = !all_zero && data.size() < states;
    if (has_tensors) keys.push_back({"initial_state", {is_trained ? "trained" : "constant"}});
    const std::string suffix = layers_.size() > 1 ? one.direction : "";
    const int64_t rows = output == "sequence_and_cell" ? steps_ + 1 : steps_;
    const int64_t width = one.directions * units_;
    Value y = call_.layer(kind_.layer, from, keys, output == "last" ? Shape{width} : Shape{rows, width}, suffix);
    for (std::size_t i = data.size(); has_tensors && i < states; ++i) {
      call_.set_tensor(y, i == 0 ? "initial_h" : "initial_c", {one.directions, units_}, part_of(constants[i], one));
    }
    set_weights(y, one);
    return y;
  }

  // A constant for each sample, from a value of its shape.
  Value as_data(const Value& like, const Constant& constant) {
    const Shape row = row_of(like);
    Value y = call_.layer("affine", {&like}, {{"shape", texts(row)}, {"trained", {"false"}}}, row, "state");
    call_.set_tensor(y, "weight", row, floats_constant(row, std::vector<float>(constant.floats->size(), 0)));
    call_.set_tensor(y, "bias", row, constant);
    return y;
  }

  Call& call_;
  Kind kind_;
  Value x_;
  int64_t directions_ = 1, steps_ = 0, units_ = 0;
  bool layout_ = false;  // the batch in front
  Keys keys_;
  std::vector<Layer> layers_;
};

void lstm(Call& call) {
  Recurrent(call, {"lstm", {0, 2, 3, 1}, {{"gate_", "Sigmoid"}, {"", "Tanh"}, {"output_", "Tanh"}}, true}).give();
}
void gru(Call& call) { Recurrent(call, {"gru", {1, 0, 2}, {{"gate_", "Sigmoid"}, {"", "Tanh"}}}).give(); }
void rnn(Call& call) { Recurrent(call, {"rnn", {0}, {{"", "Tanh"}}}).give(); }

}  // namespace

std::vector<OpRow> recurrent_rows() { return {{"GRU", 1, gru}, {"LSTM", 1, lstm}, {"RNN", 1, rnn}}; }

}  // namespace gpunn::interchange
