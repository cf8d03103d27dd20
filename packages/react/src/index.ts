export * from './terminal/index.ts'
export { Terminal } from './terminal.tsx'
export type { TerminalProps } from './terminal.tsx'
export { useStore } from './use-store.ts'
