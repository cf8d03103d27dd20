// Runs the escape probes without isolation and prints the reports as JSON.

import { runProbes } from '../../../../apps/host/src/doctor/run-probes.ts'
import { defaultRunBase } from '../../../../apps/host/src/isolation/isolation.ts'

const [dataFolder = ''] = process.argv.slice(2)
const uid = process.getuid?.() ?? 0
const reports = await runProbes('none', {
  dataFolder,
  runBase: defaultRunBase(process.env, uid),
  isRoot: uid === 0,
  program: { executable: process.execPath },
})
console.log(JSON.stringify(reports))
