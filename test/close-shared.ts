import { afterAll } from 'bun:test'
import { closeShared } from './e2e/support/shared.ts'

// In a preload file, this hook runs once, after the last test file of the process.
afterAll(closeShared, 60_000)
