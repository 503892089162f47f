// classes joins the names that are given; what is false or empty is left out.
export function classes(...names: (string | false | null | undefined)[]): string {
  return names.filter(Boolean).join(' ')
}
