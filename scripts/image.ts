// Builds the container image of a sandbox (deploy/sandbox) with the available engine.
//
//   npm run image                                 on debian:bookworm-slim, as sandwire-sandbox:VERSION
//   npm run image -- --base NAME --tag NAME       on another Debian
//   npm run image -- --agent claude               with the program of a coding agent, for your own use: it has its own license
//   npm run image -- --debootstrap                on a base made here with debootstrap: needs root, no registry

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { SOFTWARE_VERSION } from '@sandwire/protocol'
import { fillContext } from './image/context.ts'
import { importDebian } from './image/import-debian.ts'
import { findEngine, run } from './image/engine.ts'
import { readOptions } from './read-options.ts'

const USAGE = 'npm run image -- [--base IMAGE | --debootstrap] [--agent NAME[@VERSION]] [--tag NAME]'
const values = readOptions(
  {
    base: { type: 'string' },
    tag: { type: 'string', default: `sandwire-sandbox:${SOFTWARE_VERSION}` },
    agent: { type: 'string', multiple: true, default: [] },
    debootstrap: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
  USAGE,
)

function fail(message: string): never {
  console.error(`error: ${message}`)
  process.exit(1)
}

if (values.help) {
  console.log(`Usage: ${USAGE}`)
  process.exit(0)
}
if (values.debootstrap && values.base !== undefined) fail('Use --base or --debootstrap, not both')

const engine = findEngine()
if (engine === undefined)
  fail('No container engine: install docker.io or podman, and set DOCKER_HOST if its socket is elsewhere')

const HINT =
  'where no registry has the base, make one with --debootstrap, as root, or name another with --base'

/** Builds the image and removes temporary files. */
function build(program: string): void {
  const context = mkdtempSync(path.join(tmpdir(), 'sandwire-image-'))
  try {
    fillContext(context, values.agent)
    const base = values.debootstrap ? importDebian(program) : values.base
    const given = base === undefined ? [] : ['--build-arg', `BASE=${base}`]
    buildIn(context, [program, 'build', ...given, '--tag', values.tag])
  } finally {
    rmSync(context, { recursive: true, force: true })
  }
}

function buildIn(context: string, argv: readonly string[]): void {
  try {
    run(`Build ${values.tag}`, [...argv, context])
  } catch (cause) {
    if (values.debootstrap) throw cause
    throw new Error(`${cause instanceof Error ? cause.message : String(cause)}\nhint: ${HINT}`, { cause })
  }
}

try {
  build(engine)
  console.log(values.tag)
} catch (error) {
  fail(error instanceof Error ? error.message : String(error))
}
