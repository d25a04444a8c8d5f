//! The names of local variables, each in a part of its method.

use std::ops::Range;

use crate::cursor::Cursor;
use crate::error::{Error, Result};
use crate::stream::{Streams, Tables};

/// Maximum number of variables of a method.
const MAX_VARIABLES: usize = 1 << 16;
/// Maximum number of scopes of a method.
const MAX_SCOPES: u32 = 1 << 16;
/// Maximum number of bytes of a name.
const MAX_NAME_LEN: usize = 1024;
/// The bit of variables that debuggers do not show.
const HIDDEN: u16 = 1;

/// A local variable in a scope of its method.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalVariable {
    /// The number of its slot. Variables of several scopes can share one.
    pub slot: u16,
    /// The name in the source code, or the name that the compiler has made.
    pub name: String,
    /// The IL offsets of its scope.
    pub scope: Range<u32>,
    /// True if debuggers do not show it.
    pub is_hidden: bool,
}

/// The local variables of a method.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LocalVariables {
    variables: Vec<LocalVariable>,
}

impl LocalVariables {
    /// Returns the variables by scope: in the order of the PDB, in which a scope precedes those in it.
    pub fn variables(&self) -> &[LocalVariable] {
        &self.variables
    }

    /// Returns the name of a slot at an IL offset: that of the innermost scope around it. Outside of these,
    /// and for an unknown offset, a slot has the name that it has in all scopes, if that is one. `None` for
    /// variables that debuggers do not show.
    ///
    /// ```
    /// # let program: &[u8] = include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/Lines.dll"));
    /// # let embedded = portable_pdb::Image::parse(program)?.embedded_pdb(1 << 20)?.unwrap_or_default();
    /// # let pdb = portable_pdb::Pdb::parse(&embedded)?;
    /// // `Looped`: the sum, and the number of the turn.
    /// let variables = pdb.local_variables(0x0600_0003)?;
    /// assert_eq!((variables.name(0, Some(0)), variables.name(1, None)), (Some("sum"), Some("i")));
    /// assert_eq!(variables.name(9, None), None);
    /// # Ok::<(), portable_pdb::Error>(())
    /// ```
    pub fn name(&self, slot: u32, il_offset: Option<u32>) -> Option<&str> {
        let mut of_slot = self.variables.iter().filter(|of| u32::from(of.slot) == slot);
        let around = of_slot.clone().filter(|of| il_offset.is_some_and(|il| of.scope.contains(&il)));
        if let Some(innermost) = around.min_by_key(|of| of.scope.end.saturating_sub(of.scope.start)) {
            return Some(&*innermost.name).filter(|_| !innermost.is_hidden);
        }
        let first = of_slot.next().filter(|of| !of.is_hidden)?;
        of_slot.all(|of| of.name == first.name && !of.is_hidden).then_some(&first.name)
    }
}

/// Reads the variables of a method by its row.
pub(crate) fn read(streams: &Streams<'_>, tables: &Tables<'_>, method: u32) -> Result<LocalVariables> {
    let mut read = LocalVariables::default();
    let mut row = first_scope(tables, method)?;
    for _ in 0..MAX_SCOPES {
        let Some(scope) = scope(tables, row)?.filter(|scope| scope.method == method) else { break };
        let next = row.saturating_add(1);
        let end = self::scope(tables, next)?.map_or(u32::MAX, |next| next.first_variable);
        for number in scope.first_variable..end.min(tables.variables.count.saturating_add(1)) {
            if read.variables.len() >= MAX_VARIABLES {
                let (bytes, limit) = (MAX_VARIABLES as u64, MAX_VARIABLES as u64);
                return Err(Error::TooLarge { what: "the list of local variables", bytes, limit });
            }
            read.variables.extend(variable(streams, tables, number, &scope.range)?);
        }
        row = next;
    }
    Ok(read)
}

/// A row of the table of scopes.
struct Scope {
    method: u32,
    first_variable: u32,
    range: Range<u32>,
}

fn scope(tables: &Tables<'_>, row: u32) -> Result<Option<Scope>> {
    let Some(mut at) = tables.scopes.row(row) else { return Ok(None) };
    let method = at.index(tables.wide.methods, "method of a scope")?;
    at.index(tables.wide.imports, "imports of a scope")?;
    let first_variable = at.index(tables.wide.variables, "variables of a scope")?;
    at.index(tables.wide.constants, "constants of a scope")?;
    let (start, length) = (at.u32("start of a scope")?, at.u32("length of a scope")?);
    Ok(Some(Scope { method, first_variable, range: start..start.saturating_add(length) }))
}

/// Searches the first scope of a method, or of a later one: scopes are sorted by method.
fn first_scope(tables: &Tables<'_>, method: u32) -> Result<u32> {
    let (mut low, mut high) = (1, tables.scopes.count.saturating_add(1));
    while low < high {
        let middle = low.midpoint(high);
        if scope(tables, middle)?.is_some_and(|scope| scope.method < method) {
            low = middle.saturating_add(1);
        } else {
            high = middle;
        }
    }
    Ok(low)
}

fn variable(
    streams: &Streams<'_>,
    tables: &Tables<'_>,
    row: u32,
    scope: &Range<u32>,
) -> Result<Option<LocalVariable>> {
    let Some(mut at) = tables.variables.row(row) else { return Ok(None) };
    let attributes = at.u16("attributes of a local variable")?;
    let slot = at.u16("slot of a local variable")?;
    let name = at.index(tables.wide.strings, "name of a local variable")?;
    let name = text(streams.strings, name)?;
    Ok(Some(LocalVariable { slot, name, scope: scope.clone(), is_hidden: attributes & HIDDEN != 0 }))
}

/// Reads a name, which ends with NUL.
fn text(strings: Option<Cursor<'_>>, index: u32) -> Result<String> {
    let strings = strings.ok_or(Error::NotPortable("it has local variables without the stream #Strings"))?;
    let at = strings.from(usize::try_from(index).unwrap_or(usize::MAX), "name inside the heap")?;
    let rest = at.rest();
    let name = rest.get(..MAX_NAME_LEN).unwrap_or(rest).split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(name).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variable(slot: u16, name: &str, scope: Range<u32>) -> LocalVariable {
        LocalVariable { slot, name: name.to_owned(), scope, is_hidden: false }
    }

    #[test]
    fn the_scope_decides_which_name_a_slot_has() {
        let variables = vec![
            variable(0, "count", 0..100),
            variable(1, "name", 10..20),
            variable(1, "other", 20..40),
            variable(2, "only", 30..40),
            variable(3, "outer", 0..100),
            variable(3, "inner", 50..60),
            variable(4, "i", 10..20),
            variable(4, "i", 60..70),
            LocalVariable { is_hidden: true, ..variable(5, "CS$4$0000", 0..50) },
            variable(5, "shown", 50..60),
        ];
        let variables = LocalVariables { variables };
        let name = |slot, il| variables.name(slot, il);
        assert_eq!(
            (name(0, Some(0)), name(0, Some(100)), name(0, None)),
            (Some("count"), Some("count"), Some("count"))
        );
        assert_eq!((name(1, Some(19)), name(1, Some(20))), (Some("name"), Some("other")));
        // Outside of both scopes the slot can have the value of either.
        assert_eq!((name(1, Some(9)), name(1, Some(40)), name(1, None)), (None, None, None));
        assert_eq!((name(2, Some(35)), name(2, Some(90))), (Some("only"), Some("only")));
        assert_eq!(
            (name(3, Some(49)), name(3, Some(50)), name(3, Some(60))),
            (Some("outer"), Some("inner"), Some("outer"))
        );
        assert_eq!((name(4, Some(30)), name(6, Some(30))), (Some("i"), None));
        assert_eq!((name(5, Some(9)), name(5, Some(55)), name(5, Some(70))), (None, Some("shown"), None));
    }
}
