import Testing

@testable import Postgres

struct ClusterSettingsTests {
    @Test(
        "shared_buffers is a quarter of the memory, within limits",
        arguments: [
            (memory: 256 << 20, buffers: "128MB"), (2 << 30, "512MB"), (24 << 30, "4096MB"), (1 << 40, "4096MB"),
        ]
    )
    func sharedBuffers(memory: Int, buffers: String) {
        let settings = ClusterSettings(socketDirectory: "/socket", memoryBytes: memory, additional: [])
        #expect(settings.text.contains("\nshared_buffers = \(buffers)\n"))
    }

    @Test("reads the memory limit of a container") func containerLimit() {
        #expect(MachineMemory.limit(in: "536870912\n") == 536_870_912)
        #expect(MachineMemory.limit(in: "max\n") == nil)
        #expect(MachineMemory.limit(in: nil) == nil)
        #expect(MachineMemory.bytes > 0)
    }
}
