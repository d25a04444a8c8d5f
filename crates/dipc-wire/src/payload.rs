//! The definition of payloads.

/// Defines a payload from its fields: the struct, and its bytes in both directions.
///
/// Each field is followed by its name in errors. A payload that begins with `command ID -> Reply` is a
/// command. Commands are exhaustive, since the protocol never changes a command; replies are
/// `#[non_exhaustive]`.
macro_rules! payload {
    (@command $name:ident [$($parameter:ident),*]) => {};
    (@command $name:ident [$($parameter:ident),*] $id:ident -> $reply:ty) => {
        impl<$($parameter: $crate::codec::Encode),*> $crate::Command for $name<$($parameter),*> {
            const ID: $crate::CommandId = $crate::CommandId::$id;
            type Reply = $reply;
        }
    };
    ($(#[$meta:meta])* $(command $id:ident -> $reply:ty =>)? pub struct $name:ident;) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name;

        impl $crate::codec::Encode for $name {
            fn encode(&self, _: &mut $crate::Encoder, _: &'static str) -> Result<(), $crate::EncodeError> {
                Ok(())
            }
        }

        impl $crate::codec::Decode<'_> for $name {
            const MIN_LEN: usize = 0;

            fn decode(_: &mut $crate::Decoder<'_>, _: &'static str) -> Result<Self, $crate::DecodeError> {
                Ok(Self)
            }
        }

        $crate::payload::payload!(@command $name [] $($id -> $reply)?);
    };
    (
        $(#[$meta:meta])*
        $(command $id:ident -> $reply:ty =>)?
        pub struct $name:ident $(<$($parameter:ident = $default:ty),+>)? {
            $($(#[$field_meta:meta])* pub $field:ident: $type:ty = $label:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name $(<$($parameter = $default),+>)? {
            $($(#[$field_meta])* pub $field: $type,)+
        }

        impl $(<$($parameter: $crate::codec::Encode),+>)? $crate::codec::Encode for $name $(<$($parameter),+>)? {
            fn encode(&self, encoder: &mut $crate::Encoder, _: &'static str) -> Result<(), $crate::EncodeError> {
                $(self.$field.encode(encoder, $label)?;)+
                Ok(())
            }
        }

        impl<'a, $($($parameter: $crate::codec::Decode<'a>),+)?> $crate::codec::Decode<'a>
            for $name $(<$($parameter),+>)?
        {
            const MIN_LEN: usize = 0_usize$(.saturating_add(<$type as $crate::codec::Decode<'a>>::MIN_LEN))+;

            fn decode(decoder: &mut $crate::Decoder<'a>, _: &'static str) -> Result<Self, $crate::DecodeError> {
                Ok(Self { $($field: decoder.take($label)?,)+ })
            }
        }

        $crate::payload::payload!(@command $name [$($($parameter),+)?] $($id -> $reply)?);
    };
}
pub(crate) use payload;
