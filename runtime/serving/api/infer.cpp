#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/parse_number.hpp"
#include "serving/api/pending.hpp"
#include "serving/protocol/compression.hpp"
#include "serving/protocol/datatype.hpp"
#include "serving/protocol/infer_request.hpp"
#include "serving/protocol/infer_response.hpp"
#include "serving/protocol/service_error.hpp"

namespace gpunn::serving {

namespace {

constexpr std::size_t kShort = std::size_t{64} << 10;  // bytes of JSON that are read on the network's thread

struct Inference : Pending {
  std::vector<std::string> converted;  // the inputs that came as JSON, in the model's order
  InferRequest request;
  std::vector<std::size_t> outputs;  // of the model, in the order of the answer
};

std::string in(const ServedModel& model) { return " for model '" + model.name + "'"; }

// A body without JSON, which is the values of the only input.
InferRequest raw_request(std::string_view body, const ServedModel& model) {
  if (model.model.inputs().size() > 1) {
    throw ServiceError(400, "a raw binary request holds a single input, expected " +
                                std::to_string(model.model.inputs().size()) + " inputs" + in(model));
  }
  const ModelTensor& tensor = model.model.inputs().front();
  const std::size_t row_bytes = tensor.row.bytes();
  if (body.empty() || body.size() % row_bytes != 0) {
    throw ServiceError(400, "a raw binary request holds rows of " + std::to_string(row_bytes) + " bytes" + in(model) +
                                ", and the body has " + std::to_string(body.size()));
  }
  InferRequest request;
  InferInput& input = request.inputs.emplace_back();
  input.name = tensor.name;
  input.datatype = datatype_of(tensor.row.dtype);
  input.shape = batch_shape(tensor.row.shape, static_cast<int64_t>(body.size() / row_bytes));
  input.has_shape = true;
  input.binary_bytes = body.size();
  input.binary = body;
  request.binary_outputs = true;
  return request;
}

// The input of a request for a tensor of the model, which is of this shape but for the rows.
const InferInput& checked_input(const InferRequest& request, const ModelTensor& tensor, const ServedModel& model) {
  const auto found = std::ranges::find(request.inputs, tensor.name, &InferInput::name);
  if (found == request.inputs.end()) {
    const std::vector<ModelTensor>& known = model.model.inputs();
    const auto unknown = std::ranges::find_if(request.inputs, [&](const InferInput& one) {
      return std::ranges::find(known, one.name, &ModelTensor::name) == known.end();
    });
    const InferInput& wrong = unknown == request.inputs.end() ? request.inputs.front() : *unknown;  // one given twice
    throw ServiceError(
        400, "unexpected inference input '" + wrong.name + "'" + in(model) + "; expected '" + tensor.name + "'");
  }
  const InferInput& input = *found;
  if (input.in_shared_memory) throw ServiceError(501, "the service has no shared memory with its clients");
  const std::string_view expected = datatype_of(tensor.row.dtype);
  // The mean is subtracted before f64 is rounded.
  const bool wide = tensor.row.dtype == DType::f32 && input.datatype == datatype_of(DType::f64);
  if (input.datatype != expected && !wide) {
    throw ServiceError(400, "inference input '" + input.name + "' data-type is '" + input.datatype + "', but model '" +
                                model.name + "' expects '" + std::string(expected) + "'");
  }
  const Shape& row = tensor.row.shape;
  const bool fits = input.shape.size() == row.size() + 1 &&
                    std::equal(row.begin(), row.end(), input.shape.begin() + 1) && input.shape.front() >= 1;
  if (!fits) {
    throw ServiceError(400, "unexpected shape for input '" + input.name + "'" + in(model) + ". Expected " +
                                to_string(batch_shape(row, -1)) + ", got " + to_string(input.shape));
  }
  if (input.shape.front() > model.model.max_batch()) {
    throw ServiceError(400, "inference request batch-size must be <= " + std::to_string(model.model.max_batch()) +
                                in(model) + ", found " + std::to_string(input.shape.front()));
  }
  return input;
}

// Those of the model, in its order.
std::vector<const InferInput*> checked_inputs(const InferRequest& request, const ServedModel& model) {
  const std::vector<ModelTensor>& tensors = model.model.inputs();
  if (request.inputs.size() != tensors.size()) {
    throw ServiceError(400, "expected " + std::to_string(tensors.size()) + " inputs but got " +
                                std::to_string(request.inputs.size()) + " inputs" + in(model));
  }
  std::vector<const InferInput*> inputs;
  for (const ModelTensor& tensor : tensors) {
    inputs.push_back(&checked_input(request, tensor, model));
    const int64_t rows = inputs.back()->shape.front(), first = inputs.front()->shape.front();
    if (rows == first) continue;
    throw ServiceError(400, "inference input '" + tensor.name + "' has a batch-size of " + std::to_string(rows) +
                                in(model) + ", and '" + inputs.front()->name + "' has " + std::to_string(first));
  }
  return inputs;
}

std::vector<std::size_t> checked_outputs(InferRequest& request, const ServedModel& model) {
  const std::vector<ModelTensor>& known = model.model.outputs();
  if (request.outputs.empty()) {
    for (const ModelTensor& output : known) request.outputs.push_back({.name = output.name});
  }
  std::vector<std::size_t> outputs;
  for (const InferOutput& output : request.outputs) {
    const auto found = std::ranges::find(known, output.name, &ModelTensor::name);
    if (found == known.end()) {
      throw ServiceError(400, "unexpected inference output '" + output.name + "'" + in(model));
    }
    if (output.in_shared_memory) throw ServiceError(501, "the service has no shared memory with its clients");
    outputs.push_back(static_cast<std::size_t>(found - known.begin()));
  }
  return outputs;
}

Response answer_of(const Inference& inference) {
  const ServedModel& model = *inference.model;
  const int64_t rows = inference.request.inputs.front().shape.front();
  InferAnswer answer{.model = model.name, .version = model.version, .id = inference.request.id, .outputs = {}};
  for (std::size_t i = 0; i < inference.outputs.size(); ++i) {
    const ModelTensor& tensor = model.model.outputs()[inference.outputs[i]];
    const InferOutput& wanted = inference.request.outputs[i];
    OutputTensor& output = answer.outputs.emplace_back();
    output.name = tensor.name;
    output.dtype = tensor.row.dtype;
    output.shape = batch_shape(tensor.row.shape, rows);
    output.values = inference.result.outputs[i].bytes;
    output.memory = inference.result.outputs[i].memory;
    output.binary = wanted.binary.value_or(inference.request.binary_outputs);
    output.classes = wanted.classes;
    const std::vector<std::string>& labels = model.model.info().fields.target().names;
    if (static_cast<int64_t>(labels.size()) == tensor.row.elements()) output.labels = labels;
  }
  EncodedAnswer encoded = encode_infer_answer(answer);
  Response response;
  response.body = std::move(encoded.body);
  response.rest = std::move(encoded.rest);
  if (encoded.has_binary) {
    response.content_type = "application/octet-stream";
    response.headers.emplace_back("Inference-Header-Content-Length", std::to_string(encoded.header_bytes));
  }
  const Coding coding = accepted_coding(inference.exchange->header("Accept-Encoding"));
  if (coding != Coding::identity) {
    for (const SharedBytes& part : response.rest) response.body += part.bytes;
    response.rest.clear();
    response.body = compress(response.body, coding);
    response.headers.emplace_back("Content-Encoding", std::string(name_of(coding)));
  }
  return response;
}

// The length of the JSON before binary tensors, where there are any.
std::optional<std::size_t> json_bytes_of(const Exchange& exchange) {
  const std::string_view text = exchange.header("Inference-Header-Content-Length");
  if (text.empty()) return std::nullopt;
  const std::optional<int64_t> number = parse_number<int64_t>(text);
  if (!number || *number < 0) {
    throw ServiceError(400,
                       "Inference-Header-Content-Length is '" + std::string(text) + "'; expected a number of bytes");
  }
  return static_cast<std::size_t>(*number);
}

void submit(const std::shared_ptr<Inference>& inference, const ServingOptions& options) {
  const Exchange& exchange = *inference->exchange;
  ServedModel& model = *inference->model;
  const std::string_view body = plain_body(*inference, options.body_bytes);
  const std::optional<std::size_t> header_bytes = json_bytes_of(exchange);
  inference->request =
      header_bytes == std::size_t{0} ? raw_request(body, model) : parse_infer_request(body, header_bytes);
  const std::vector<const InferInput*> inputs = checked_inputs(inference->request, model);
  inference->converted.resize(inputs.size());
  inference->outputs = checked_outputs(inference->request, model);
  Job job = job_of(inference, answer_of);
  job.rows = inputs.front()->shape.front();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const DType type = dtype_of(inputs[i]->datatype).value_or(model.model.inputs()[i].row.dtype);
    job.inputs.push_back({packed_values(*inputs[i], type, inference->converted[i]).data(), type});
  }
  job.outputs = inference->outputs;
  if (inference->request.timeout_us > 0) {
    constexpr uint64_t kLongest = 86'400'000'000;
    job.deadline = job.received + std::chrono::microseconds(std::min(inference->request.timeout_us, kLongest));
  }
  model.batcher.submit(std::move(job));
}

}  // namespace

void infer(const ExchangePtr& exchange, const ServedModelPtr& model, const ServingOptions& options, WorkerPool& pool) {
  auto inference = std::make_shared<Inference>();
  inference->exchange = exchange;
  inference->model = model;
  const auto begin = [inference, &options] {
    try {
      submit(inference, options);
    } catch (const std::exception& failure) {
      fail(*inference, failure);
    }
  };
  const std::size_t json = json_bytes_of(*exchange).value_or(exchange->body().size());
  if (json <= kShort && exchange->header("Content-Encoding").empty()) return begin();
  pool.run(begin);
}

}  // namespace gpunn::serving
