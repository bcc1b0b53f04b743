// Words that a sentence answers better than another word: what this version does not serve, with what to do instead,
// and what is chosen elsewhere. When a feature comes, its row goes.
#include "common/words/tables.hpp"

namespace gpunn::words {

namespace {

constexpr Explanation kExplanations[] = {
    {"regression regressor regress mae l1_loss mean_absolute_error r2 rmse forecasting",
     "To learn numbers in place of classes, put 'task: regression' at the top of the file."},
    {"multilabel multi_label multi_label_classification multilabel_classification multihot multi_hot",
     "Where a sample may have several labels, put 'task: multi_label' at the top of the file."},
    {"detection object_detection bbox bboxes boxes coco voc pascal_voc yolo",
     "To find objects in images, put 'task: detection' at the top of the file (data.dataset: detection_folder)."},
    {"semantic_segmentation masks cityscapes", "A class of each pixel is learnt by 'task: segmentation'."},
    {"instance_segmentation keypoints pose",
     "This version finds objects as boxes ('task: detection'), not as masks or points."},
    {"gan diffusion generation generative autoencoder vae unsupervised clustering self_supervised contrastive "
     "reinforcement_learning",
     "This version learns from targets: every training sample needs its class, labels, numbers, boxes or image."},
    {"devices gpus num_gpus n_gpus ngpus n_gpu gpu_ids num_devices device_ids world_size ddp dp fsdp data_parallel "
     "dataparallel distributed distributed_training multi_gpu multigpu nproc nproc_per_node nodes num_nodes nnodes "
     "horovod deepspeed strategy tensor_parallel model_parallel pipeline_parallel replicas",
     "How many devices train together is no key: 'gpunn run EXPERIMENT --devices 4' starts a process for each, and so "
     "do mpirun, srun and torchrun."},
    {"backends", "A run uses one backend: 'gpunn race' trains an experiment on several, one after the other."},
    {"device gpu cuda cpu cuda:0 cuda:1 gpu:0 mps rocm tpu xpu use_gpu use_cuda no_cuda accelerator cuda_device gpu_id "
     "cuda_visible_devices platform",
     "What computes is chosen by 'backend: NAME' at the top of the file, or --backend NAME ('gpunn plugins' lists the "
     "names); which of its devices, by 'device: N' at the top, or --set device=N, counted from 0."},
    {"onnx .onnx",
     "An ONNX file is a trained model, for 'gpunn predict', 'serve', 'eval', 'bench', 'summary' and 'export', and the "
     "'model' of an experiment, which trains it further."},
    {"pt .pt .pth .ckpt .bin torchscript pytorch torch state_dict",
     "gpunn and PyTorch exchange weights as .safetensors: in Python, safetensors.torch.save_file(model.state_dict(), "
     "'model.safetensors') writes them and safetensors.torch.load_file reads them."},
    {"engine .engine",
     "An engine is planned for one device and answers only: 'gpunn predict', 'serve', 'bench infer' and 'plan "
     "--inference' take it. It is made of a model by 'gpunn export'."},
    {".pb .tflite .keras .mlmodel .trt .gguf .pkl .joblib tensorrt tflite openvino coreml saved_model",
     "This version exchanges weights as .safetensors alone ('gpunn export', key 'init_from')."},
    {"fp16 f16 float16 half half_precision 16 64 16_mixed 16_true amp use_amp mixed mixed_precision autocast "
     "grad_scaler fp8 float8 int8 fp64 f64 float64 double",
     "Half precision is 'training.precision: bf16', or 'f16', whose losses are scaled: what lies between layers is of "
     "that type, what is learnt stays f32. This version trains neither in fp8, int8 nor fp64."},
    {"text nlp imdb wikitext ag_news glue tokens tokenizer vocab audio speech librispeech speech_commands video "
     "timeseries time_series .txt .jsonl .wav .mp3 .flac .ogg .mp4 .avi",
     "This version trains on images and on rows of numbers, not on text, audio or video: turn each sample into a row "
     "of numbers (data.dataset: csv or hdf5)."},
    {"transformer transformer_encoder transformerencoderlayer vit",
     "A transformer's block is multi_head_attention, layer_norm, linear and add: models/vit.yaml has one."},
    {"problem problem_type", "What is learnt is said by 'task' at the top of the file."},
    {"wandb mlflow comet neptune logger tensorboard",
     "A run folder has its records for TensorBoard (tensorboard --logdir runs), as metrics.jsonl and as metrics.csv, "
     "and no other logger is served."},
    {"resume", "'gpunn resume RUN' goes on with an interrupted run."},
    {"profile", "'gpunn run EXPERIMENT --profile' measures the first steps of a training."},
    {"version", "'gpunn --version' prints it."},
};

}  // namespace

std::span<const Explanation> explanations() { return kExplanations; }

}  // namespace gpunn::words
