// Exchanges two names in a folder until it is killed: `bun swapper.fixture.ts FOLDER A B`.

import { cString, openAt, renameAt } from '../beneath/system-calls.ts'
import { AT_FDCWD, O_DIRECTORY, O_PATH } from '../beneath/constants.ts'

const [folder = '', ...names] = process.argv.slice(2)
const [a, b] = names.map((name) => cString(Buffer.from(name)))
const fd = openAt(AT_FDCWD, cString(Buffer.from(folder)), O_PATH | O_DIRECTORY)
if (a === undefined || b === undefined || fd < 0)
  throw new Error('Cannot swap: expected a folder and two names')

const exchange = (): number => renameAt({ folder: fd, name: a }, { folder: fd, name: b }, 'exchange')
if (exchange() < 0) throw new Error('Cannot swap: the file system cannot exchange names')
process.stdout.write('swapping\n')
for (;;) exchange()
