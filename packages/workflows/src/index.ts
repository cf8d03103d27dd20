export * from './call-claude.ts'
export * from './runtime.ts'
