import { createIsolation } from '../isolation/choose-isolation.ts'
import { runSupervisor } from './run-supervisor.ts'

/** Runs one sandbox, apart from the host that started it: `supervisor SPEC-FILE`. */
const specFile = process.argv[2]
if (specFile === undefined) {
  process.stderr.write('supervisor: no file given; this program is started by sandwire\n')
  process.exit(2)
}
await runSupervisor(specFile, ({ kind, ...settings }) => createIsolation(kind, settings))
process.exit(0)
