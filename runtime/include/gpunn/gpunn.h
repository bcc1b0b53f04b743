/*
 * libgpunn for C: a trained model in your own program. docs/embedding.md has an example.
 *
 * Results. Every function that can fail returns GPUNN_DONE or says what kind of failure it was; gpunn_last_error() has
 * the sentence for the user. Nothing is written to the caller's memory then. A NULL where something is needed, a size
 * that does not fit, and a handle that was destroyed are failures like any other, GPUNN_WRONG_USE.
 *
 * Threads. Any function may be called from any thread. A handle may be destroyed while other threads use it: their
 * calls end as they would have.
 *
 * Growth. A struct that begins with struct_size only grows at its end: set it to the size that the caller knows.
 */
#ifndef GPUNN_GPUNN_H
#define GPUNN_GPUNN_H

#include <gpunn/abi.h> /* GPUNN_F32 ..., GPUNN_PRECISION_FP32 ... */
#include <gpunn/export.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Values of gpunn_result. */
typedef int32_t gpunn_result;
enum {
  GPUNN_DONE = 0,
  GPUNN_FAILED = 1,
  GPUNN_WRONG_USE = 2,  /* an argument is wrong */
  GPUNN_MISSING = 3,    /* a file, a plugin, a device or memory is not there */
  GPUNN_LOST_DEVICE = 5 /* the device failed; the model can't be used any more */
};

/* Why this thread's last failed call failed; "" if none has. Valid until this thread's next call. */
GPUNN_API const char* gpunn_last_error(void);

/* The library's version, "0.2.0". */
GPUNN_API const char* gpunn_version(void);

/* A loaded model: a handle, not an address. */
typedef struct gpunn_model gpunn_model;

enum { GPUNN_AS_TRAINED = -1 }; /* of an option: as the experiment of the training says */

/* How a model is opened. gpunn_model_options_init() sets every field to its default. */
typedef struct gpunn_model_options {
  uint32_t struct_size;
  int32_t precision;          /* GPUNN_PRECISION_..., or GPUNN_AS_TRAINED */
  const char* backend;        /* a plugin's name or file, or "auto"; NULL: as trained */
  int64_t device;             /* counted from 0, or GPUNN_AS_TRAINED */
  int64_t threads;            /* of the backend on the host, for one call; 0: its choice; or GPUNN_AS_TRAINED */
  int64_t max_batch;          /* most rows of one call */
  int64_t calls;              /* calls at the same time; 0 means one for each processor, at most 8 */
  const char* const* plugins; /* files and folders to find backends in, in addition to the usual places */
  uint64_t n_plugins;         /* entries of plugins */
} gpunn_model_options;

/* Sets the defaults. `struct_size` is sizeof(gpunn_model_options). */
GPUNN_API gpunn_result gpunn_model_options_init(gpunn_model_options* options, uint32_t struct_size);

/* Opens a run folder (its best checkpoint), a checkpoint, an engine or an ONNX file. `options` may be NULL. */
GPUNN_API gpunn_result gpunn_model_load(const char* path, const gpunn_model_options* options, gpunn_model** model);
GPUNN_API gpunn_result gpunn_model_destroy(gpunn_model* model);

/* Describes a model. Texts are valid until the model is destroyed. */
typedef struct gpunn_model_info {
  uint32_t struct_size;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_classes; /* names of gpunn_model_class: classes, labels or target columns */
  int64_t max_batch;
  const char* name;    /* of the experiment */
  const char* task;    /* "classification" */
  const char* backend; /* that runs it */
  const char* device;  /* its name */
} gpunn_model_info;

/* Fills `info`, whose struct_size the caller has set. */
GPUNN_API gpunn_result gpunn_model_describe(gpunn_model* model, gpunn_model_info* info);

/* An input or output: the type of one row, so that a batch is [rows, dim...], packed and row-major. */
typedef struct gpunn_model_tensor {
  uint32_t struct_size;
  int32_t dtype; /* GPUNN_F32, GPUNN_U8; GPUNN_F64 for values of scaled targets */
  const char* name;
  uint64_t row_bytes;
  int32_t rank;
  int32_t reserved;
  int64_t dim[8];
} gpunn_model_tensor;

/* Fills `tensor` with the type of the input or output `index`, counted from 0. */
GPUNN_API gpunn_result gpunn_model_input(gpunn_model* model, uint32_t index, gpunn_model_tensor* tensor);
GPUNN_API gpunn_result gpunn_model_output(gpunn_model* model, uint32_t index, gpunn_model_tensor* tensor);
/* Sets `name` to the name of the class, label or target column `index`, counted from 0. It is valid until the model is
 * destroyed. */
GPUNN_API gpunn_result gpunn_model_class(gpunn_model* model, uint32_t index, const char** name);

/* The caller's memory for `rows` rows of an input or output. */
typedef struct gpunn_array {
  const char* name; /* NULL: the first */
  void* data;       /* read only for an input */
  uint64_t bytes;   /* rows * row_bytes, of this dtype */
  int32_t dtype;    /* the model's; an input of f32 may be f64, which is centred before it is rounded; an output of
                       f64 may be f32 */
  int32_t reserved;
} gpunn_array;

/* Computes the outputs for 1 to max_batch rows and waits for them. Allocates nothing if an earlier call had the same
 * number of rows. Fails with GPUNN_MISSING if that many rows need more memory than is free. */
GPUNN_API gpunn_result gpunn_model_run(gpunn_model* model, int64_t rows, const gpunn_array* inputs, uint32_t n_inputs,
                                       const gpunn_array* outputs, uint32_t n_outputs);

/* A class of the model, and its probability from 0 to 1. */
typedef struct gpunn_class_probability {
  int64_t index;
  const char* name; /* valid until the model is destroyed */
  double probability;
} gpunn_class_probability;

/* For a model of classes or labels: finds the `top` most probable classes of each row, the most probable first. `input`
 * points to an array for each input of the model. `found` has room for rows * top entries. `top` is at most the number
 * of classes. */
GPUNN_API gpunn_result gpunn_model_classify(gpunn_model* model, int64_t rows, const gpunn_array* input, uint32_t top,
                                            gpunn_class_probability* found);

/* Reads an image file as one row of the input. Converts channels and size as the training did. `bytes` is the input's
 * row_bytes. */
GPUNN_API gpunn_result gpunn_model_read_image(gpunn_model* model, const char* file, void* data, uint64_t bytes);

/* Ends the backends' threads and driver contexts. Call it at the end of main, after every model is destroyed. */
GPUNN_API void gpunn_shutdown(void);

#ifdef __cplusplus
}
#endif

#endif
