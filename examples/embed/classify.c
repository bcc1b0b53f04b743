/* Classifies images by a trained model: classify_c RUN IMAGE... */
#include <gpunn/gpunn.h>

#include <stdio.h>
#include <stdlib.h>

static int failed(const char* what) {
  fprintf(stderr, "%s: %s\n", what, gpunn_last_error());
  return 1;
}

static int classify(gpunn_model* model, const char* file) {
  gpunn_model_tensor input = {.struct_size = sizeof input};
  if (gpunn_model_input(model, 0, &input) != GPUNN_DONE) return failed(file);
  void* pixels = malloc(input.row_bytes);
  if (pixels == NULL) return 1;

  int code = 0;
  gpunn_class_probability best;
  const gpunn_array image = {.name = input.name, .data = pixels, .bytes = input.row_bytes, .dtype = input.dtype};
  if (gpunn_model_read_image(model, file, pixels, input.row_bytes) != GPUNN_DONE ||
      gpunn_model_classify(model, 1, &image, 1, &best) != GPUNN_DONE) {
    code = failed(file);
  } else {
    printf("%s: %s, %.1f %%\n", file, best.name, 100 * best.probability);
  }
  free(pixels);
  return code;
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fputs("usage: classify_c RUN IMAGE...\n", stderr);
    return 2;
  }
  gpunn_model_options options;
  gpunn_model* model = NULL;
  gpunn_model_options_init(&options, sizeof options);
  options.max_batch = 1;
  if (gpunn_model_load(argv[1], &options, &model) != GPUNN_DONE) return failed(argv[1]);

  int code = 0;
  for (int i = 2; i < argc; ++i) code |= classify(model, argv[i]);
  gpunn_model_destroy(model);
  gpunn_shutdown();
  return code;
}
