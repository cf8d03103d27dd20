// Measures Sandwire, other programs and controls side by side:
// bun bench/run.ts [--only ROW] [--rounds N] [--write]

import { join } from 'node:path'
import { readOptions, readWholeNumber } from '../scripts/read-options.ts'
import { installPeers } from './install-peers.ts'
import { describeMachine } from './machine.ts'
import { insertFigures, renderRow, type RowResult } from './report.ts'
import { type Competitor, isAbsent, type Row } from './row.ts'
import { gatewayDelay, runEnd, runEvents, runMemory, runStart } from './rows/agents.ts'
import { command } from './rows/command.ts'
import { completePipe, completePty } from './rows/completeness.ts'
import { connect } from './rows/connect.ts'
import { conversationPaint, conversationRelay, idleConversations } from './rows/conversations.ts'
import { copyIn, copyOut } from './rows/copy-files.ts'
import { echoBesideSave, echoPipe, echoPty } from './rows/echo.ts'
import { downloadFile, transferMemory, uploadFile } from './rows/file-transfer.ts'
import { endSessions } from './rows/end-sessions.ts'
import { floodEcho, floodRequest } from './rows/floods.ts'
import { frozenViewer } from './rows/frozen-viewer.ts'
import { interruptFast, interruptSlow } from './rows/interrupt.ts'
import { manySessions } from './rows/many-sessions.ts'
import { idlePipe, idlePty, stalledReader } from './rows/memory.ts'
import { neighborEcho, neighborFile, neighborPrompt, neighborRequest } from './rows/neighbors.ts'
import { outputPipe, outputPty } from './rows/output.ts'
import { prompt } from './rows/prompt.ts'
import { reattach } from './rows/reattach.ts'
import { resume } from './rows/resume.ts'
import {
  restoreFiles,
  saveAgain,
  saveAgainBytes,
  saveBlock,
  saveBlockBytes,
  saveFirstBytes,
  saveFirstTime,
  saveMemory,
  savePause,
  saveQuarter,
} from './rows/saves.ts'
import { search } from './rows/search.ts'
import { spritesEcho, spritesMemory, spritesReady, spritesReattach } from './rows/sprites.ts'
import { stalledControl } from './rows/stalled-control.ts'
import { tree } from './rows/tree.ts'
import { browserBundle, browserFlood, browserKeys, browserPrompt } from './rows/workbench.ts'
import { openScratch, type Scratch } from './scratch.ts'

const USAGE = 'npm run bench -- [--only ROW]... [--rounds N] [--write]'
const PAGE = join(import.meta.dir, 'README.md')

const ROWS: readonly Row[] = [
  echoPipe,
  echoPty,
  outputPipe,
  outputPty,
  connect,
  interruptFast,
  interruptSlow,
  completePipe,
  completePty,
  stalledReader,
  frozenViewer,
  idlePipe,
  idlePty,
  resume,
  prompt,
  command,
  stalledControl,
  floodRequest,
  floodEcho,
  neighborRequest,
  neighborEcho,
  neighborFile,
  neighborPrompt,
  manySessions,
  endSessions,
  reattach,
  tree,
  spritesReady,
  spritesReattach,
  spritesEcho,
  spritesMemory,
  search,
  runStart,
  runEnd,
  gatewayDelay,
  runEvents,
  runMemory,
  conversationRelay,
  conversationPaint,
  idleConversations,
  downloadFile,
  uploadFile,
  transferMemory,
  copyIn,
  copyOut,
  saveFirstTime,
  saveFirstBytes,
  saveAgain,
  saveAgainBytes,
  saveQuarter,
  saveBlock,
  saveBlockBytes,
  restoreFiles,
  saveMemory,
  savePause,
  echoBesideSave,
  browserKeys,
  browserFlood,
  browserPrompt,
  browserBundle,
]

/** Fewest rounds for a meaningful range. */
const DEFAULT_ROUNDS = 5

function log(line: string): void {
  process.stderr.write(`${line}\n`)
}

/** Rejects at the first SIGINT or SIGTERM, so that all servers are stopped; the second one kills the run. */
function watchForStop(): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => reject(new Stopped()))
  promise.catch(() => {})
  return promise
}

class Stopped extends Error {}

/** Measures each competitor in turn, round after round, so that a busy moment affects all of them. */
async function runRounds(competitors: readonly Competitor[], rounds: number, stopped: Promise<never>) {
  const figures = new Map<string, number[]>(competitors.map(({ name }) => [name, []]))
  const failed = new Map<string, string>()
  for (let round = 0; round < rounds; round += 1) {
    for (const { name, measure } of competitors) {
      if (failed.has(name)) continue
      try {
        figures.get(name)?.push(await Promise.race([measure(), stopped]))
      } catch (error) {
        if (error instanceof Stopped) throw error
        failed.set(name, error instanceof Error ? error.message : String(error))
        figures.delete(name)
      }
    }
  }
  return { figures, failed: [...failed].map(([name, message]) => ({ name, message })) }
}

interface RunOptions {
  readonly rounds: number
  readonly scratch: Scratch
  /** Rejects when the run is interrupted. */
  readonly stopped: Promise<never>
}

async function runRow(row: Row, { rounds, scratch, stopped }: RunOptions): Promise<RowResult> {
  const opened = await row.open({ scratch })
  const competitors = opened.filter((each): each is Competitor => !isAbsent(each))
  try {
    const measured = await runRounds(competitors, row.rounds ?? rounds, stopped)
    return { row, absent: opened.filter(isAbsent), ...measured }
  } finally {
    for (const competitor of competitors) await competitor[Symbol.asyncDispose]()
  }
}

function selectRows(only: readonly string[]): readonly Row[] {
  const unknown = only.find((id) => !ROWS.some((row) => row.id === id))
  if (unknown === undefined) return only.length === 0 ? ROWS : ROWS.filter(({ id }) => only.includes(id))
  log(`error: no row "${unknown}"`)
  log(`hint: use one of ${ROWS.map(({ id }) => id).join(', ')}`)
  process.exit(2)
}

async function main(): Promise<void> {
  const values = readOptions(
    {
      only: { type: 'string', multiple: true, default: [] },
      rounds: { type: 'string', default: String(DEFAULT_ROUNDS) },
      write: { type: 'boolean', default: false },
    },
    USAGE,
  )
  const rows = selectRows(values.only)
  const rounds = readWholeNumber(values.rounds, USAGE)
  installPeers(log)
  const machine = describeMachine()
  log(machine)
  const stopped = watchForStop()
  await using scratch = await openScratch()
  const results: RowResult[] = []
  for (const row of rows) {
    const result = await runRow(row, { rounds, scratch, stopped })
    results.push(result)
    console.log(`${renderRow(result)}\n`)
  }
  if (!values.write) return
  const skipped = new Map(results.flatMap(({ absent }) => absent.map((each) => [each.name, each.absent])))
  const absent = [...skipped]
    .filter(([, why]) => !why.startsWith('has no'))
    .map(([name, why]) => `${name}: ${why}`)
  const date = new Date().toISOString().slice(0, 10)
  const part = values.only.length === 0 ? '' : ', rows of several runs'
  const head = `${date}, ${rounds} rounds${part}. ${machine}.${absent.length === 0 ? '' : ` Not measured: ${absent.join('; ')}.`}`
  const page = await Bun.file(PAGE).text()
  await Bun.write(PAGE, insertFigures(page, head, results, ROWS))
}

/** Exit status after SIGINT. */
const EXIT_STOPPED = 130

try {
  await main()
} catch (error) {
  if (!(error instanceof Stopped)) throw error
  log('Stopped')
  process.exit(EXIT_STOPPED)
}
// Open connections of peers must not keep the process alive.
process.exit()
