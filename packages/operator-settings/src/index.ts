export {
  type CommandSettings,
  validateCommandSettings,
  NO_COMMAND_SETTINGS,
} from './commands/command-settings.ts'
export { type Field, validateRecord } from './validate-record.ts'
export {
  commandName,
  type CommandTemplate,
  findValueProblem,
  replacePlaceholders,
  SHELLS,
  type TemplateParameter,
} from './commands/command-template.ts'
export { findEmbedOriginProblem, MAX_EMBED_ORIGINS } from './embed-origin.ts'
export * from './identity/issuer-config.ts'
export * from './identity/presets.ts'
export * from './ceilings/ceiling-settings.ts'
export * from './credentials/credential-settings.ts'
export * from './runs/run-settings.ts'
