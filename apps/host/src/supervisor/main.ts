import { createIsolation } from '../isolation/choose-isolation.ts'
import { runSupervisor } from './run-supervisor.ts'

/** Runs one sandbox, independently of the host: `supervisor SPEC-FILE`. */
const specFile = process.argv[2]
if (specFile === undefined) {
  process.stderr.write('supervisor: no spec file given; sandwire starts this program\n')
  process.exit(2)
}
await runSupervisor(specFile, ({ kind, ...settings }) => createIsolation(kind, settings))
process.exit(0)
