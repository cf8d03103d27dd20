import { expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AgentClient } from './support/agents/agent-client.ts'
import { startSandboxd } from './support/sandboxd.ts'

/** The user `nobody` on Debian. */
const UID = 65_534

/** An agent in shell, because its user cannot read this repository. It runs the task as a script. */
const AGENT = `#!/bin/sh
read -r initialize
read -r task
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
printf '%s' "$task" | sed 's/.*"content":"\\([^"]*\\)".*/\\1/' | sh >/dev/null 2>&1
echo '{"type":"result","subtype":"success","is_error":false,"result":"Done"}'
`

test.if(process.getuid?.() === 0)(
  'an agent of another user cannot reach the journal or the base, and its diff has files that sandboxd cannot read',
  async () => {
    const parent = mkdtempSync(join(tmpdir(), 'agent-users-'))
    chmodSync(parent, 0o755)
    const workspace = join(parent, 'workspace')
    const state = join(parent, 'state')
    mkdirSync(workspace)
    chownSync(workspace, UID, UID)
    chmodSync(workspace, 0o700)
    mkdirSync(state)
    chmodSync(state, 0o711)
    const program = join(parent, 'agent')
    writeFileSync(program, AGENT, { mode: 0o755 })
    await using sandboxd = await startSandboxd({
      workspace,
      args: ['--run-as', `${UID}:${UID}`, '--state', state],
    })
    const agents = new AgentClient(sandboxd)
    const run = join(state, 'agents', 'run')
    const attacks = [
      `ls ${state}/agents`,
      `ls ${run}`,
      `cat ${run}/journal`,
      `echo x >> ${run}/journal`,
      `rm -rf ${run}/base`,
      `echo x > ${run}/base/index`,
      `mv ${run} ${run}2`,
    ].map((attack, index) => `${attack} && echo ${index} >> broken.txt`)
    const task = [...attacks, 'umask 077', 'echo private > private.txt', 'id -u > uid.txt'].join('; ')
    await agents.start('run', [], { program, task })
    const result = await agents.result('run')
    expect(result).toMatchObject({ status: 'completed', isTamperProof: true, diffProblem: null })
    expect(result.diff?.files.map(({ path }) => path)).toEqual(['private.txt', 'uid.txt'])
    expect(await agents.diff('run')).toContain('+65534')
    for (const name of ['journal', 'events', 'meta.json', 'result.json', 'patch'])
      expect(statSync(join(run, name)).mode & 0o077).toBe(0)
    expect(readdirSync(run).filter((name) => name.startsWith('scratch'))).toEqual([])
    rmSync(parent, { recursive: true })
  },
)
