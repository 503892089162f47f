// classes joins class names, and leaves out false and empty ones.
export function classes(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(' ')
}
