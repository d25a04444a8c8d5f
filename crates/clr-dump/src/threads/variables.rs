//! The arguments and local variables of frames, by the places that the runtime keeps for debuggers.

use portable_pdb::ProgramMetadata;

use crate::code::debug_info::VariablePlace;
use crate::code::gc_info;
use crate::heap::object::Value;
use crate::heap::regions::HeapLayout;
use crate::memory::address::{Address, TypeHandle};
use crate::memory::offset;
use crate::processor::Processor;
use crate::runtime::module::Module;
use crate::threads::Threads;
use crate::threads::stack::Frame;
use crate::threads::thread::Thread;
use crate::types::enumeration;
use crate::types::field::ValueKind;
use crate::types::signature::{self, TypeParameters};
use crate::unwind::FramePosition;
use crate::unwind::registers::{Register, Registers};

/// Maximum number of frames of a thread to read variables of.
const MAX_FRAMES: usize = 4096;
/// Maximum number of values of the structures of a variable.
const MAX_VALUES: usize = 256;
/// Maximum number of variables of a thread.
const MAX_VARIABLES: usize = 1 << 16;

/// The table of the types that a program defines, as in tokens.
const TYPE_DEFINITION: u32 = 0x0200_0000;

/// The variables of a thread's frames.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StackVariables {
    /// The managed frames, innermost first.
    pub frames: Vec<FrameVariables>,
    /// True if frames or variables are missing, because a limit was reached: 4,096 frames or 65,536
    /// variables.
    pub is_truncated: bool,
}

/// The variables of a frame.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct FrameVariables {
    /// The frame.
    pub frame: Frame,
    /// `this`, the arguments, and the local variables.
    pub variables: Vec<Variable>,
}

/// A variable of a frame.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Variable {
    /// The role in its method.
    pub role: VariableRole,
    /// The name of a parameter; `None` of local variables, which a PDB names, and if metadata lacks it.
    pub name: Option<String>,
    /// The declared type in signature notation, with the names of type parameters.
    pub type_text: Option<String>,
    /// The kind of the values; `None` if the type is not known.
    pub kind: Option<ValueKind>,
    /// The value; `None` if the code no longer has it, or has it in a place that is not read.
    pub value: Option<Value>,
}

/// The role of a variable in its method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum VariableRole {
    /// The object that the method is of.
    This,
    /// A parameter, by its number from 0.
    Argument(u32),
    /// A local variable, by its number from 0.
    Local(u32),
}

/// A parameter or a local variable of a method, as the method declares it.
struct Declared {
    role: VariableRole,
    name: Option<String>,
    type_text: Option<String>,
    kind: Kind,
}

impl Declared {
    /// A local variable of which only the number is known.
    const fn unknown(number: u32) -> Self {
        Self { role: VariableRole::Local(number), name: None, type_text: None, kind: Kind::Unknown }
    }
}

/// The variables that a method declares.
#[derive(Default)]
struct Declarations {
    /// `this` and the parameters.
    parameters: Vec<Declared>,
    /// The local variables; `None` if their signature is not known.
    locals: Option<Vec<Declared>>,
}

/// A method with its metadata.
struct Declaring<'m> {
    module: &'m Module,
    metadata: &'m ProgramMetadata<'m>,
    method_table: TypeHandle,
    row: u32,
    type_parameters: TypeParameters,
}

/// The kind of a value, with its type if it is a structure or an enumeration.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Known(ValueKind, Option<TypeHandle>),
    /// A reference, or anything else: the word shows it.
    Unknown,
}

impl Threads<'_> {
    /// Returns the variables of a thread's managed frames, innermost first, given its own registers: those
    /// whose places the runtime keeps for debuggers.
    ///
    /// ```no_run
    /// # let core = clr_dump::CoreFile::open(std::fs::File::open("core")?)?;
    /// # let dump = clr_dump::Dump::open(&core)?;
    /// for thread in dump.threads().list()? {
    ///     for of in dump.threads().variables(&thread, core.registers(thread.os_id)).frames {
    ///         println!("{:#x}: {:?}", of.frame.ip, of.variables);
    ///     }
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn variables(self, thread: &Thread, registers: Option<&Registers>) -> StackVariables {
        let heap = HeapLayout::read(self.memory(), self.runtime()).ok();
        let mut all = StackVariables::default();
        let mut left = MAX_VARIABLES;
        self.runtime().visit_stack(self.memory(), thread, registers, &mut |frame, registers| {
            if left == 0 || all.frames.len() >= MAX_FRAMES {
                all.is_truncated |= frame.code.is_some();
                return;
            }
            let reader = VariableReader { threads: self, heap: heap.as_ref(), frame, registers };
            let mut variables = reader.variables().unwrap_or_default();
            all.is_truncated |= variables.len() > left;
            variables.truncate(left);
            left = left.saturating_sub(variables.len());
            all.frames.push(FrameVariables { frame: *frame, variables });
        });
        all
    }
}

struct VariableReader<'f> {
    threads: Threads<'f>,
    heap: Option<&'f HeapLayout>,
    frame: &'f Frame,
    registers: &'f Registers,
}

impl VariableReader<'_> {
    fn variables(&self) -> Option<Vec<Variable>> {
        let code = self.frame.code.as_ref()?;
        let Declarations { parameters, locals } = self.declarations().unwrap_or_default();
        let address = self.frame.position.lookup_address(self.frame.ip);
        let info = self.threads.dump.types().debug_info(code, address).ok().flatten();
        let native = info.and_then(|info| info.variables(self.threads.memory()).ok().flatten());
        let native = native.unwrap_or_default();
        let count = u32::try_from(parameters.len()).ok()?;
        // Without their signature, only their numbers are known.
        let locals = locals.unwrap_or_else(|| {
            let numbers = native.iter().filter_map(|native| native.number.checked_sub(count));
            numbers.map(Declared::unknown).collect()
        });
        // They are in the order of their numbers.
        let index = |number: u32| native.binary_search_by_key(&number, |native| native.number).ok();
        let place = |number: u32| native.get(index(number)?)?.place;
        let variable = |(index, of): (u32, Declared)| {
            let number = match of.role {
                VariableRole::Local(number) => count.saturating_add(number),
                _ => index,
            };
            Variable {
                value: place(number).and_then(|place| self.value(place, of.kind)),
                role: of.role,
                name: of.name,
                type_text: of.type_text,
                kind: match of.kind {
                    Kind::Known(kind, _) => Some(kind),
                    Kind::Unknown => None,
                },
            }
        };
        Some((0..).zip(parameters.into_iter().chain(locals)).map(variable).collect())
    }

    /// The variables that the method of the frame declares; `None` if the memory lacks its metadata.
    fn declarations(&self) -> Option<Declarations> {
        let types = self.threads.dump.types();
        let (method, method_table) = types.method_and_type(self.frame.code.as_ref()?)?;
        let (module, token) = (method.module?, method.token?);
        let metadata = types.metadata(&module)?;
        let row = token & 0x00ff_ffff;
        let definition = metadata.method(row).ok()?;
        let of_type = metadata.type_parameters(TYPE_DEFINITION | definition.type_row);
        let type_parameters = TypeParameters {
            of_type: of_type.unwrap_or_default(),
            of_method: metadata.type_parameters(token).unwrap_or_default(),
        };
        let (module, metadata) = (&*module, &metadata);
        let method = Declaring { module, metadata, method_table, row, type_parameters };
        Some(Declarations {
            parameters: self.parameters(&method, definition.signature)?,
            locals: self.locals(&method),
        })
    }

    /// The parameters of a method, with `this`.
    fn parameters(&self, method: &Declaring<'_>, signature: &[u8]) -> Option<Vec<Declared>> {
        let types = self.threads.dump.types();
        let (has_this, parameters) = signature::parameters(signature)?;
        let names = method.metadata.parameters(method.row).unwrap_or_default();
        let mut all = Vec::new();
        if has_this {
            let is_reference = types.value_kind(method.method_table).ok() == Some(ValueKind::REFERENCE);
            // A method of a structure has its address.
            let kind = if is_reference { ValueKind::REFERENCE } else { ValueKind(0x10) };
            all.push(Declared {
                role: VariableRole::This,
                name: None,
                type_text: types.name(method.method_table).map(|name| name.to_string()),
                kind: Kind::Known(kind, None),
            });
        }
        for (number, of) in (0_u32..).zip(parameters) {
            let name = names.iter().find(|(at, _)| u32::from(*at) == number.saturating_add(1));
            let name = name.map(|(_, name)| name.clone()).filter(|name| !name.is_empty());
            all.push(Declared { name, ..self.declared(method, VariableRole::Argument(number), of) });
        }
        Some(all)
    }

    /// The local variables of a method; `None` if the memory lacks their signature.
    fn locals(&self, method: &Declaring<'_>) -> Option<Vec<Declared>> {
        let row = self.threads.dump.types().locals_row(method.module, method.row)?;
        let types = signature::locals(method.metadata.stand_alone_signature(row).ok()?)?;
        let local = |(number, of)| self.declared(method, VariableRole::Local(number), of);
        Some((0_u32..).zip(types).map(local).collect())
    }

    fn declared(&self, method: &Declaring<'_>, role: VariableRole, of: &[u8]) -> Declared {
        let type_text = signature::variable(method.metadata, of, &method.type_parameters);
        Declared { role, name: None, type_text, kind: self.kind(method, of) }
    }

    /// The kind of the values of a type.
    fn kind(&self, method: &Declaring<'_>, of: &[u8]) -> Kind {
        let types = self.threads.dump.types();
        let Some(first) = of.first().copied() else { return Kind::Unknown };
        match first {
            0x02..=0x10 | 0x12 | 0x14 | 0x18 | 0x19 | 0x1b..=0x1d => Kind::Known(ValueKind(first), None),
            0x15 if of.get(1) == Some(&0x12) => Kind::Known(ValueKind::REFERENCE, None),
            0x11 | 0x13 | 0x15 => {
                let field = [&[signature::FIELD], of].concat();
                let of = types.value_type(method.module, method.metadata, method.method_table, &field);
                match of.map(|of| (types.value_kind(of), of)) {
                    Some((Ok(kind), of)) => Kind::Known(kind, Some(of)),
                    _ => Kind::Unknown,
                }
            }
            _ => Kind::Unknown,
        }
    }

    /// The value at a place; `None` if the place cannot be read.
    fn value(&self, place: VariablePlace, kind: Kind) -> Option<Value> {
        let memory = self.threads.memory();
        let at = match place {
            VariablePlace::Register(number) => return Some(self.of_word(self.register(number)?, kind)),
            VariablePlace::AddressInRegister(number) => self.register(number)?,
            VariablePlace::Stack { base, offset } => self.on_stack(base, offset)?,
            VariablePlace::AddressOnStack { base, offset } => {
                memory.u64(self.on_stack(base, offset)?).ok()?
            }
            VariablePlace::Other => return None,
        };
        match kind {
            Kind::Known(kind, of) => {
                let mut left = MAX_VALUES;
                let value = self.threads.dump.heap().value_at(kind, of, at, 16, &mut left);
                (value != Value::Missing).then_some(value)
            }
            Kind::Unknown => Some(self.of_word(memory.u64(at).ok()?, kind)),
        }
    }

    /// The value of a word in a register.
    fn of_word(&self, word: u64, kind: Kind) -> Value {
        let heap = self.threads.dump.heap();
        let (kind, of) = match kind {
            Kind::Known(kind, of) => (kind, of),
            Kind::Unknown => {
                let address = Address::new(word);
                let is_object = self.heap.is_some_and(|heap| heap.contains(word));
                return if is_object && heap.object_at(address).is_some() {
                    heap.reference(address)
                } else {
                    Value::Pointer(address)
                };
            }
        };
        let bytes = word.to_le_bytes();
        let (low, half, byte) = (
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            u16::from_le_bytes([bytes[0], bytes[1]]),
            bytes[0],
        );
        let value = match kind.0 {
            0x02 => Value::Bool(byte != 0),
            0x03 => Value::Char(half),
            0x04 => Value::Signed(byte.cast_signed().into()),
            0x05 => Value::Unsigned(byte.into()),
            0x06 => Value::Signed(half.cast_signed().into()),
            0x07 => Value::Unsigned(half.into()),
            0x08 => Value::Signed(low.cast_signed().into()),
            0x09 => Value::Unsigned(low.into()),
            0x0a | 0x18 => Value::Signed(word.cast_signed()),
            0x0b | 0x19 => Value::Unsigned(word),
            0x0f | 0x10 | 0x1b => Value::Pointer(Address::new(word)),
            0x0e | 0x12 | 0x14 | 0x1c | 0x1d => heap.reference(Address::new(word)),
            _ => Value::Bytes(bytes.to_vec()),
        };
        let number = match value {
            Value::Signed(number) => number,
            Value::Unsigned(number) => number.cast_signed(),
            value => return value,
        };
        match of.and_then(|of| self.threads.dump.types().enumeration(of)) {
            Some(constants) => Value::Enumeration { number, name: enumeration::name(&constants, number) },
            None => value,
        }
    }

    /// The value of a register; of those that callees can overwrite only in the innermost frame.
    fn register(&self, number: u8) -> Option<u64> {
        let processor = self.registers.processor();
        let register = Register::of_processor(processor, number);
        let count = match processor {
            Processor::X86_64 => 16,
            Processor::Aarch64 => 32,
        };
        let is_known = self.frame.position == FramePosition::Innermost
            || register == Register::stack_pointer(processor)
            || register == Register::FP
            || gc_info::is_preserved(processor, number);
        self.registers.get(register).filter(|_| is_known && number < count)
    }

    fn on_stack(&self, base: u8, by: i32) -> Option<u64> {
        Some(offset(self.register(base)?, i64::from(by).cast_unsigned()))
    }
}
