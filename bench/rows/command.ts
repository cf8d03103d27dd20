import { openControl, openPeer } from '../competitors.ts'
import { readRaw } from '../peers/raw-read.ts'
import { buildSbxStdio, createSbxStdio } from '../peers/sbx-stdio.ts'
import { ssh } from '../peers/ssh.ts'
import type { Service } from '../peers/stream.ts'
import { atMost, type Row } from '../row.ts'
import { median } from '../statistics.ts'

/** Runs per measurement. */
const TIMES = 10

const COMMAND = { argv: ['true'], mode: 'pipe' } as const

async function repeat(once: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let left = TIMES; left > 0; left -= 1) {
    const startMs = performance.now()
    await once()
    times.push(performance.now() - startMs)
  }
  return median(times)
}

function measureCommand(service: Service): Promise<number> {
  return repeat(async () => {
    const code = await (await service.connect()).ended
    if (code !== 0) throw new Error(`Got exit code ${code}, expected 0`)
  })
}

export const command: Row = {
  id: 'command',
  title: 'run `true` until exit',
  unit: 'ms',
  digits: 1,
  about: 'From starting the compiled sbx-stdio, or ssh, to its exit after `true` in a sandbox that runs.',
  targets: [atMost('sandwire sbx-stdio', 'ssh')],
  open: async ({ scratch }) => {
    const program = buildSbxStdio(scratch)
    return [
      // The cost of starting the executable.
      openControl('sbx-stdio --version', () => repeat(() => readRaw([program, '--version'], 'pipe'))),
      ...(await Promise.all(
        [createSbxStdio(program), ssh].map((peer) => openPeer(peer, COMMAND, measureCommand)),
      )),
    ]
  },
}
