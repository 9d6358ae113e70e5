// Does the launches of a file (machine.py, write_launch), each on arrays of their exact size, so
// that the address sanitizer sees the slightest step beyond; then writes the arrays to stdout.

#include <vector>

struct Header {
    char name[64];
    unsigned grid[3], block[3], arguments;
};

struct Argument {
    uint64_t is_array, memory_of, size;  // the memory of this argument or of one before
};

static void read(FILE *file, void *to, size_t size) {
    if (size && fread(to, size, 1, file) != 1) exit(3);
}

int main(int, char **argv) {
    FILE *file = fopen(argv[1], "rb");
    Header launch;
    while (fread(&launch, sizeof launch, 1, file) == 1) {
        std::vector<Argument> kinds(launch.arguments);
        std::vector<char *> memory(launch.arguments);
        std::vector<void *> pointers(launch.arguments);
        for (unsigned i = 0; i < launch.arguments; i++) {
            read(file, &kinds[i], sizeof kinds[i]);
            memory[i] = memory[kinds[i].memory_of];
            if (kinds[i].memory_of == i) {
                memory[i] = static_cast<char *>(malloc(kinds[i].size));
                read(file, memory[i], kinds[i].size);
            }
            pointers[i] = kinds[i].is_array ? static_cast<void *>(&memory[i]) : memory[i];
        }
        const char *problem = "no such kernel";
        for (const Named &kernel : KERNELS) {
            if (strcmp(kernel.name, launch.name)) continue;
            problem = kernel.run(launch.grid, launch.block, false, pointers.data());
        }
        if (problem) {
            fprintf(stderr, "%s: %s\n", launch.name, problem);
            return 2;
        }
        for (unsigned i = 0; i < launch.arguments; i++) {
            if (kinds[i].memory_of != i) continue;
            if (kinds[i].is_array) {
                fwrite(&kinds[i].size, sizeof kinds[i].size, 1, stdout);
                fwrite(memory[i], kinds[i].size, 1, stdout);
            }
            free(memory[i]);
        }
    }
    fclose(file);
}
