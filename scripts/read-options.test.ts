import { expect, test } from 'bun:test'
import path from 'node:path'

test.each(['deploy', 'image', 'cost'])(
  '%s names an option that it does not know, in one line with a hint',
  (name) => {
    const script = path.join(import.meta.dir, `${name}.ts`)
    const { exitCode, stdout, stderr } = Bun.spawnSync([process.execPath, script, '--bogus'])
    expect([exitCode, stdout.toString()]).toEqual([2, ''])
    expect(stderr.toString()).toMatch(
      new RegExp(`^error: Unknown option '--bogus'\nhint: npm run ${name} -- [^\n]+\n$`),
    )
  },
)
