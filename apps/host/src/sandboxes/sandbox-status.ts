import { readdirSync } from 'node:fs'
import path from 'node:path'
import { formatSlotAddress, isSandboxId, type SandboxStatus } from '@sandwire/internal-api'
import { isRunning } from '../data/process-identity.ts'
import {
  type AliveState,
  filesIn,
  readState,
  type RunningState,
  type SupervisorState,
} from '../supervisor/sandbox-files.ts'

/** True while the supervisor that wrote this state runs. */
export function isAlive(state: SupervisorState | undefined): state is AliveState {
  return state !== undefined && state.state !== 'stopped' && isRunning(state)
}

function stopped(id: string, reason: string | undefined): SandboxStatus {
  return { id, state: 'stopped', ...(reason !== undefined && { reason }) }
}

/** Derives the status from the last written state. A supervisor that is gone without writing `stopped` was lost. */
export function statusFrom(id: string, state: SupervisorState | undefined): SandboxStatus {
  switch (state?.state) {
    case undefined:
      return stopped(id, undefined)
    case 'stopped':
    case 'stopping':
      return stopped(id, state.reason)
    case 'starting':
      return isRunning(state) ? { id, state: 'starting' } : stopped(id, 'supervisor_lost')
    case 'running': {
      if (!isRunning(state)) return stopped(id, 'supervisor_lost')
      const { epoch, startedMs, slot } = state
      return { id, state: 'running', address: formatSlotAddress(slot), epoch, startedMs }
    }
  }
}

/** States of the sandboxes that run, from a folder with one folder for each. */
export function listRunning(sandboxesFolder: string): RunningState[] {
  return readdirSync(sandboxesFolder)
    .filter(isSandboxId)
    .map((id) => readState(filesIn(path.join(sandboxesFolder, id)).state))
    .filter((state) => state?.state === 'running')
    .filter(isRunning)
}
