export { LockFile, openLockFile } from './lock-file.ts'
